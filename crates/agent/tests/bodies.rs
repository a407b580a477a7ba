//! The body that is here does what every body does; the one behind a door is told of beside its door,
//! in the tests of `nacre-supervisor`.

use nacre_agent::body::Local;
use nacre_agent::body::conformance::tell_all;

#[tokio::test]
async fn the_local_body_conforms() {
    let workspace = tempfile::tempdir().unwrap();
    tell_all(&Local::new(workspace.path()), workspace.path()).await;
}
