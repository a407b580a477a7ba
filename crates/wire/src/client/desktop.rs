//! The desktop of a sandbox.

use super::{Client, Result};
use crate::desktop::{DesktopHealth, SeedRequest, Seeded};

impl Client {
    /// Returns when its source is in the workspace, or it is known that it is not wanted there.
    pub async fn seed_desktop(&self, wanted: &SeedRequest) -> Result<Seeded> {
        self.post_json("/supervisor/desktop/seed", wanted).await
    }

    pub async fn desktop_health(&self) -> Result<DesktopHealth> {
        self.get_json("/supervisor/desktop/health").await
    }
}
