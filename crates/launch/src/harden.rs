//! Gives up everything a sandbox does not need.

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::order::Begin;
use crate::{Result, Step, seccomp};

/// What root in a sandbox may do there: own files, become its users, end its processes.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// The last step before the supervisor runs. There is no way back.
pub(crate) fn harden(begin: &Begin) -> Result<()> {
    limit(Resource::Core, 1, "core")?;
    if let Some(processes) = begin.max_processes {
        limit(Resource::Nproc, processes, "nproc")?;
    }
    drop_capabilities()?;
    set_no_new_privs(true).step(|| "set no_new_privs".to_owned())?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .step(|| "become undumpable".to_owned())?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    seccomp::install()
}

/// A core limit of 1 is the one value that also keeps the host's core handler from running.
fn limit(resource: Resource, value: u64, name: &str) -> Result<()> {
    let limit = Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(resource, limit).step(|| format!("limit {name}"))
}

fn drop_capabilities() -> Result<()> {
    let step = || "drop capabilities".to_owned();
    clear_ambient_capability_set().step(step)?;
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel says which it knows.
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !KEPT.contains(capability) => {
                remove_capability_from_bounding_set(capability).step(step)?;
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let sets =
        CapabilitySets { effective: KEPT, permitted: KEPT, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).step(step)
}
