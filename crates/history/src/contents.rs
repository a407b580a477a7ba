use std::io::{Read, Write};

use crate::entry::ContentId;
use crate::error::Result;

/// Where the bytes of files go: the store, or memory in tests. Several threads keep at once.
pub(crate) trait Keep: Sync {
    /// Keeps a whole small file.
    fn keep(&self, bytes: &[u8]) -> Result<ContentId>;

    /// Keeps a large file as it is read, in bounded memory. Gives its length too.
    fn keep_stream(&self, from: &mut dyn Read) -> Result<(ContentId, u64)>;
}

/// Where the bytes of files come from. Several threads fetch at once.
pub(crate) trait Fetch: Sync {
    /// Writes out what was kept. The bytes of a large content are written as they are found right,
    /// part by part; all of it is right when this returns without an error.
    fn fetch(&self, id: ContentId, to: &mut dyn Write) -> Result<()>;
}
