mod crashes;
mod differential;
mod harness;
mod hostile;
mod limits;
