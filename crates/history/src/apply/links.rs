//! Which names become names of one file, and which file that is.

use std::collections::{HashMap, HashSet};

use super::Step;
use crate::entry::{Entry, Kind};
use crate::error::{Context, Result};
use crate::tree::Root;

/// The names of one file or symbolic link in the target.
#[derive(Debug)]
pub(super) struct Group {
    /// Positions in the steps.
    pub(super) members: Vec<usize>,
    /// The member whose inode is kept and linked to, when one has the right bytes already.
    pub(super) base: Option<usize>,
}

/// An inode that a group could keep. No two groups may keep the same.
struct Candidate {
    /// Smaller is better.
    rank: (bool, bool, usize),
    group: usize,
    member: usize,
}

/// Groups the steps whose target is a file or a symbolic link, for which there is something to do or
/// to link to.
pub(super) fn groups(root: &Root, steps: &[&Step]) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_link: HashMap<u64, usize> = HashMap::new();
    for (member, step) in steps.iter().enumerate() {
        let Some(target) = &step.target else { continue };
        if !is_linkable(target) || step.now.as_ref().is_some_and(|now| stays(now, target)) {
            continue;
        }
        let known = target.link.and_then(|link| by_link.get(&link).copied());
        match known {
            Some(group) => groups[group].members.push(member),
            None => {
                if let Some(link) = target.link {
                    by_link.insert(link, groups.len());
                }
                groups.push(Group { members: vec![member], base: None });
            }
        }
    }
    choose_bases(root, steps, &mut groups)?;
    Ok(groups)
}

fn choose_bases(root: &Root, steps: &[&Step], groups: &mut [Group]) -> Result<()> {
    let mut names: HashMap<u64, usize> = HashMap::new();
    for step in steps.iter().filter(|step| step.now.is_some()) {
        *names.entry(step.signature.inode).or_default() += 1;
    }
    let mut candidates = Vec::new();
    for (group, members) in groups.iter().map(|group| &group.members).enumerate() {
        for &member in members {
            let step = steps[member];
            let (Some(now), Some(target)) = (&step.now, &step.target) else { continue };
            if step.signature.inode == 0 || !can_stay(now, target) {
                continue;
            }
            let tied = now.link.is_some() && now.link == target.link;
            let known = names.get(&step.signature.inode).copied().unwrap_or(0);
            if tied || now.link.is_none() || all_names_are_steps(root, step, known)? {
                let rank = (!tied, !now.same_file(target), member);
                candidates.push(Candidate { rank, group, member });
            }
        }
    }
    candidates.sort_by_key(|candidate| candidate.rank);
    let mut kept = HashSet::new();
    for Candidate { group, member, .. } in candidates {
        if groups[group].base.is_none() && kept.insert(steps[member].signature.inode) {
            groups[group].base = Some(member);
        }
    }
    Ok(())
}

/// Specials are never replaced.
fn stays(now: &Entry, target: &Entry) -> bool {
    matches!(now.kind, Kind::Special(_)) || target.link.is_none() && now.same(target)
}

fn is_linkable(target: &Entry) -> bool {
    match target.kind {
        Kind::File { .. } | Kind::Symlink { .. } => true,
        Kind::Directory | Kind::Special(_) => false,
    }
}

/// Whether the inode may be brought to the target without new bytes. Never to more rights than its
/// writer had: he may hold it open, and what is in it then is what he likes.
fn can_stay(now: &Entry, target: &Entry) -> bool {
    let privileged = target.mode & 0o6000 != 0
        || target.xattrs.iter().any(|xattr| xattr.name == b"security.capability");
    now.kind == target.kind && (now.same_file(target) || !privileged)
}

/// A name that leaves its group may take the file along only when no name outside of the steps
/// stays behind on it.
fn all_names_are_steps(root: &Root, step: &Step, known: usize) -> Result<bool> {
    let found = root.stat(&step.path).context(|| format!("look at {}", step.path))?;
    Ok(found.is_some_and(|found| {
        found.signature.inode == step.signature.inode && found.links as usize == known
    }))
}
