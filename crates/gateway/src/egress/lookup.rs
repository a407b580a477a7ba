//! Names to addresses, so that nobody's names hold up somebody else.
//!
//! The system's look-up occupies a thread until a name server has answered, long after whoever asked has
//! given up, and the threads are those that the rest of the gateway works on: its database, and the names
//! of model providers. So a place is kept until the look-up itself has ended. Each sandbox has some, and
//! all together have fewer than there are threads (512, as tokio has it).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use nacre_atproto::Resolve;
use tokio::sync::Semaphore;

/// Look-ups of one sandbox at a time; the next wait for a place, within the time to connect.
const MOST_OF_ONE: usize = 32;
const MOST_OF_ALL: usize = 192;

/// For all sandboxes.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolve>,
    all: Arc<Semaphore>,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, all: Arc::new(Semaphore::new(MOST_OF_ALL)) }
    }

    /// For one more sandbox.
    pub(super) fn share(&self) -> Lookup {
        let (resolver, all) = (Arc::clone(&self.resolver), Arc::clone(&self.all));
        Lookup { resolver, all, own: Arc::new(Semaphore::new(MOST_OF_ONE)) }
    }
}

/// For one sandbox. All clones share its places.
#[derive(Clone)]
pub(super) struct Lookup {
    resolver: Arc<dyn Resolve>,
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

impl Lookup {
    pub(super) async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // In this order: who waits for a place of its own keeps none of everybody's.
        let own = Arc::clone(&self.own).acquire_owned().await.map_err(io::Error::other)?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(io::Error::other)?;
        let answer = self.resolver.addresses(name);
        let looked_up = tokio::spawn(async move {
            let answer = answer.await;
            drop((own, all));
            answer
        });
        looked_up.await.map_err(io::Error::other)?
    }
}
