//! The agent that `nacre up` puts into the sandboxes of one-shot runs, and what this machine can bear.

use nacre_gateway::{AgentProgram, Machine};

/// Static, so that it runs in any root filesystem.
static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nacre-agent"));

pub(crate) fn program() -> AgentProgram {
    AgentProgram(AGENT.into())
}

pub(crate) fn machine() -> Machine {
    let system = rustix::system::sysinfo();
    Machine {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: system.totalram.saturating_mul(system.mem_unit.into()),
    }
}
