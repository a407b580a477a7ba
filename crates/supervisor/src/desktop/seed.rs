//! The desktop's source, put into the workspace, where it is its owner's and the agent's.
//!
//! It is unpacked beside its place, as the user, and appears there whole. Everything is one change in
//! history, so that it can be taken back.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use flate2::read::GzDecoder;
use nacre_wire::desktop::{SeedRequest, Seeded};
use nacre_wire::history::Author;
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{Mode, OFlags, RenameFlags, openat, renameat_with, symlinkat};
use rustix::io::Errno;

use super::built::{MODULES, SOURCE};
use super::{Context, Desktop};
use crate::failure::Failure;
use crate::files::fault::at;
use crate::files::identity::act_as;
use crate::files::root::{Place, Root};
use crate::files::{hop, remove_tree, temporary_name, unpack};
use crate::history::Manner;
use crate::memory;
use crate::runtime::CONFIG;

const FOLDER: &str = "shell";
const PACKAGES: &str = "node_modules";
/// What every sandbox of the machine shares.
const SHARED: &str = "/opt/nacre";
const CONFIGURATION: &str = include_str!("nacre.toml");
/// Beyond this it is not the source of a desktop.
const LARGEST: u64 = 64 << 20;

/// The source that this binary carries.
#[derive(Debug, Clone, Copy)]
struct Source {
    /// A tar archive, as gzip.
    archive: &'static [u8],
    /// Which packages it was written for.
    modules: &'static str,
}

pub(super) async fn seed(
    State(desktop): State<Arc<Desktop>>,
    body: Bytes,
) -> Result<Json<Seeded>, Failure> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    let request: SeedRequest = serde_json::from_slice(body).map_err(|error| {
        Failure::new(ErrorKind::InvalidRequest, format!("the body is not as expected: {error}"))
    })?;
    let Some(archive) = SOURCE else {
        return Ok(Json(not("this nacre was built without a desktop")));
    };
    let source = Source { archive, modules: MODULES };
    // Finished even if who asked goes away: half of it would be put down to nobody.
    let work = tokio::spawn(async move {
        let _alone = desktop.seeding.lock().await;
        planted(&desktop.context, source, request).await
    });
    let stopping = |_| Failure::new(ErrorKind::Unavailable, "the supervisor is stopping");
    Ok(Json(work.await.map_err(stopping)??))
}

async fn planted(
    context: &Context,
    source: Source,
    request: SeedRequest,
) -> Result<Seeded, ApiError> {
    let call = if request.replace { "seed desktop anew" } else { "seed desktop" };
    let authors = vec![Author::Api { call: call.to_owned() }];
    let activity = context.recorder.begin(Manner::Foreground, authors).await;
    let (workspace, user) = (context.workspace.clone(), context.user.clone());
    let done = hop(move || {
        let root = Root::open(Path::new("/"), &workspace)?;
        let acting = act_as(&user)?;
        let done = plant(&root, source, request);
        drop(acting);
        memory::give_back();
        done
    })
    .await;
    drop(activity);
    if matches!(&done, Ok(seeded) if seeded.seeded) && request.replace {
        // Its server stands in a folder that is gone, and watches that one. Who asked does not wait for it.
        drop(context.runtime.affected(&[PathBuf::from(FOLDER)]));
    }
    done
}

/// On a thread that acts as the user.
fn plant(root: &Root, source: Source, request: SeedRequest) -> Result<Seeded, ApiError> {
    let place = root.place(&root.absolute(Path::new(FOLDER))?)?;
    let is_there = place.stat().is_ok();
    if is_there && !request.replace {
        return Ok(not(&format!("{} is there already", place.path.display())));
    }
    let draft = place.beside(temporary_name()?)?;
    let moved = prepare(root, &draft, source).and_then(|()| swap(&draft, &place, is_there));
    // What is left there is the draft, or what it took the place of.
    let swept = match draft.stat() {
        Err(_) => Ok(()),
        Ok(_) => remove_tree(&draft),
    };
    moved?;
    swept?;
    configure(root)?;
    Ok(Seeded { seeded: true, why: None })
}

fn prepare(root: &Root, draft: &Place, source: Source) -> Result<(), ApiError> {
    let mut archive = Vec::new();
    GzDecoder::new(source.archive)
        .take(LARGEST)
        .read_to_end(&mut archive)
        .map_err(|error| ApiError::io("the desktop's source", &error))?;
    unpack(root, &draft.path, archive.into())?;
    let packages = draft.path.join(PACKAGES);
    let link = root.place(&packages)?;
    let target = PathBuf::from(SHARED).join(format!("desktop-{}", source.modules)).join(PACKAGES);
    symlinkat(&target, link.fd(), &link.name).map_err(at(&packages))
}

/// In one step, whatever is there.
fn swap(draft: &Place, place: &Place, is_there: bool) -> Result<(), ApiError> {
    let how = if is_there { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    renameat_with(draft.fd(), &draft.name, place.fd(), &place.name, how).map_err(at(&place.path))
}

/// Last: with this the desktop starts.
fn configure(root: &Root) -> Result<(), ApiError> {
    let place = root.place(&root.absolute(Path::new(CONFIG))?)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    match openat(place.fd(), &place.name, flags, Mode::from_raw_mode(0o644)) {
        Ok(file) => {
            std::io::Write::write_all(&mut std::fs::File::from(file), CONFIGURATION.as_bytes())
                .map_err(|error| ApiError::io(place.path.display(), &error))
        }
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(at(&place.path)(error)),
    }
}

fn not(why: &str) -> Seeded {
    Seeded { seeded: false, why: Some(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tempfile::TempDir;

    use super::*;

    const ID: &str = "0123456789abcdef";

    fn source(page: &str) -> Source {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in [("index.html", page), ("src/main.tsx", "1")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, content.as_bytes()).unwrap();
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar.into_inner().unwrap()).unwrap();
        Source { archive: gzip.finish().unwrap().leak(), modules: ID }
    }

    fn workspace() -> (TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(Path::new("/"), &folder.path().canonicalize().unwrap()).unwrap();
        (folder, root)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_is_there_whole_with_a_link_to_its_packages_and_starts() {
        let (folder, root) = workspace();
        let seeded = plant(&root, source("one"), SeedRequest::default()).unwrap();
        assert_eq!(seeded, Seeded { seeded: true, why: None });
        assert_eq!(names(folder.path()), ["nacre.toml", "shell"]);
        let shell = folder.path().join("shell");
        assert_eq!(names(&shell), ["index.html", "node_modules", "src"]);
        let link = fs::read_link(shell.join("node_modules")).unwrap();
        assert_eq!(link, Path::new("/opt/nacre/desktop-0123456789abcdef/node_modules"));
        let config = fs::read(folder.path().join("nacre.toml")).unwrap();
        let config = crate::runtime::parse_config(&config).unwrap();
        let spec = &config.processes["runtime"];
        assert!(spec.guard && spec.per_mount && spec.directory.0 == Path::new("shell"));
    }

    #[test]
    fn nothing_that_is_there_is_touched_unless_it_is_to_be_replaced() {
        let (folder, root) = workspace();
        let shell = folder.path().join("shell");
        fs::create_dir_all(shell.join("node_modules/mine")).unwrap();
        fs::write(shell.join("mine.txt"), "mine").unwrap();
        let refused = plant(&root, source("one"), SeedRequest::default()).unwrap();
        assert!(!refused.seeded && refused.why.unwrap().ends_with("shell is there already"));
        assert_eq!(names(folder.path()), ["shell"]);

        fs::write(folder.path().join("nacre.toml"), "# mine").unwrap();
        let replace = SeedRequest { replace: true };
        assert!(plant(&root, source("two"), replace).unwrap().seeded);
        assert_eq!(names(&shell), ["index.html", "node_modules", "src"]);
        assert!(shell.join("node_modules").is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("nacre.toml")).unwrap(), "# mine");
        assert_eq!(names(folder.path()), ["nacre.toml", "shell"]);
    }

    #[test]
    fn an_archive_that_is_cut_leaves_nothing_behind() {
        let (folder, root) = workspace();
        let whole = source("one");
        let cut = Source { archive: &whole.archive[..whole.archive.len() / 2], ..whole };
        assert!(plant(&root, cut, SeedRequest::default()).is_err());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
