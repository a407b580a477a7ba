//! What the owner said about the way out of each sandbox.

use std::collections::BTreeMap;

use nacre_sandbox::SandboxId;
use nacre_wire::egress::{EgressEffect, EgressMode};
use rusqlite::{Connection, params};

use super::tables::parse;
use super::{Store, StoreError};
use crate::egress::rule::Rule;

/// What one sandbox has of its own, besides the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnEgress {
    pub(crate) mode: Option<EgressMode>,
    /// In the order they were made.
    pub(crate) rules: Vec<Rule>,
}

impl Store {
    pub(crate) async fn egress(&self) -> Result<BTreeMap<SandboxId, OwnEgress>, StoreError> {
        self.run(|connection| read(connection, None)).await
    }

    pub(crate) async fn egress_of(&self, id: &SandboxId) -> Result<OwnEgress, StoreError> {
        let id = id.clone();
        let found = self.run(move |connection| {
            let mut found = read(connection, Some(id.as_str()))?;
            Ok(found.remove(&id))
        });
        Ok(found.await?.unwrap_or_default())
    }

    pub(crate) async fn set_egress_mode(
        &self,
        id: &SandboxId,
        mode: Option<EgressMode>,
    ) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            match mode {
                Some(mode) => connection.execute(
                    "INSERT INTO egress_modes (sandbox_id, mode) VALUES (?1, ?2)
                     ON CONFLICT (sandbox_id) DO UPDATE SET mode = ?2",
                    params![id, mode.as_str()],
                )?,
                None => {
                    connection.execute("DELETE FROM egress_modes WHERE sandbox_id = ?", [id])?
                }
            };
            Ok(())
        })
        .await
    }

    /// In place of a rule about the same target.
    pub(crate) async fn put_egress_rule(
        &self,
        id: &SandboxId,
        rule: Rule,
    ) -> Result<(), StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            connection.execute(
                "INSERT INTO egress_rules (sandbox_id, target, effect, private)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (sandbox_id, target) DO UPDATE SET effect = ?3, private = ?4",
                params![id, rule.pattern.to_string(), rule.effect.as_str(), rule.private],
            )?;
            Ok(())
        })
        .await
    }

    /// Whether there was one.
    pub(crate) async fn remove_egress_rule(
        &self,
        id: &SandboxId,
        target: String,
    ) -> Result<bool, StoreError> {
        let id = id.as_str().to_owned();
        self.run(move |connection| {
            let removed = connection.execute(
                "DELETE FROM egress_rules WHERE sandbox_id = ? AND target = ?",
                params![id, target],
            )?;
            Ok(removed > 0)
        })
        .await
    }

    pub(crate) async fn copy_egress(
        &self,
        from: &SandboxId,
        to: &SandboxId,
    ) -> Result<(), StoreError> {
        let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "INSERT OR REPLACE INTO egress_modes (sandbox_id, mode)
                 SELECT ?2, mode FROM egress_modes WHERE sandbox_id = ?1",
                params![from, to],
            )?;
            transaction.execute(
                "INSERT OR REPLACE INTO egress_rules (sandbox_id, target, effect, private)
                 SELECT ?2, target, effect, private FROM egress_rules WHERE sandbox_id = ?1
                 ORDER BY id",
                params![from, to],
            )?;
            Ok(transaction.commit()?)
        })
        .await
    }
}

fn read(
    connection: &Connection,
    only: Option<&str>,
) -> Result<BTreeMap<SandboxId, OwnEgress>, StoreError> {
    let mut found: BTreeMap<SandboxId, OwnEgress> = BTreeMap::new();
    let mut modes = connection.prepare_cached(
        "SELECT sandbox_id, mode FROM egress_modes WHERE ?1 IS NULL OR sandbox_id = ?1",
    )?;
    let mut rows = modes.query([only])?;
    while let Some(row) = rows.next()? {
        let (id, mode): (String, String) = (row.get(0)?, row.get(1)?);
        let mode = parse(&id, "egress mode", EgressMode::parse(&mode).ok_or(mode))?;
        found.entry(parse(&id, "id", id.parse())?).or_default().mode = Some(mode);
    }
    let mut rules = connection.prepare_cached(
        "SELECT sandbox_id, target, effect, private FROM egress_rules
         WHERE ?1 IS NULL OR sandbox_id = ?1 ORDER BY id",
    )?;
    let mut rows = rules.query([only])?;
    while let Some(row) = rows.next()? {
        let (id, target, effect): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        // A rule that cannot be read may be one that denies: nothing is guessed.
        let effect = parse(&id, "egress rule", EgressEffect::parse(&effect).ok_or(effect))?;
        let pattern = parse(&id, "egress rule", target.parse())?;
        let rule = Rule { effect, pattern, private: row.get(3)? };
        found.entry(parse(&id, "id", id.parse())?).or_default().rules.push(rule);
    }
    Ok(found)
}
