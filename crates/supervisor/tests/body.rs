//! The agent's body behind a real door does what its body inside does.

mod support;

use nacre_agent::body::Remote;
use nacre_agent::body::conformance::tell_all;
use support::Supervisor;

#[tokio::test]
async fn the_remote_body_conforms() {
    let supervisor = Supervisor::start().await;
    tell_all(&Remote::new(supervisor.client(), "c1"), &supervisor.workspace()).await;
}
