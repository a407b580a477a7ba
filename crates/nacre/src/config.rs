//! `nacre.toml`: each module owns its table; here they are put together.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nacre_agent::mcp::Servers;
use nacre_gateway::{
    GatewayConfig, ModelsConfig, RawAgentConfig, RawConversationsConfig, RawDesktopConfig,
    RawEgressConfig, RawGatewayConfig, RawKnowledgeConfig, RawModelsConfig, RawProvider,
    RawRolesConfig, RawRunsConfig,
};
use serde::Deserialize;

use crate::commands::up::Front;
use crate::failure::{Failure, Result};
use crate::logging::RawLogConfig;
use crate::{agent, desktop, providers};

const FILE: &str = "nacre.toml";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawConfig {
    gateway: RawGatewayConfig,
    roles: RawRolesConfig,
    egress: RawEgressConfig,
    agent: RawAgentConfig,
    conversations: RawConversationsConfig,
    mcp: Servers,
    log: RawLogConfig,
    models: RawModelsConfig,
    knowledge: RawKnowledgeConfig,
    provider: BTreeMap<String, RawProvider>,
    runs: RawRunsConfig,
    desktop: RawDesktopConfig,
    sandboxes: RawSandboxesConfig,
}

/// The `[sandboxes]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawSandboxesConfig {
    /// Directories of this machine that every sandbox shows besides its system. What is changed in them
    /// is changed in the sandbox only.
    host_directories: Vec<PathBuf>,
}

/// Everything `nacre up` needs to know.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) gateway: GatewayConfig,
    pub(crate) log: RawLogConfig,
    pub(crate) host_directories: Vec<PathBuf>,
}

impl RawConfig {
    /// The named file, or `nacre.toml` in the data directory when there is one.
    pub(crate) fn load(data_dir: &Path, named: Option<&Path>) -> Result<Self> {
        let path = named.map_or_else(|| data_dir.join(FILE), Path::to_owned);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let mut raw = Self::parse(&text, &path)?;
                let folder = path.parent().unwrap_or(Path::new(""));
                raw.gateway.tls_cert = raw.gateway.tls_cert.map(|file| folder.join(file));
                raw.gateway.tls_key = raw.gateway.tls_key.map(|file| folder.join(file));
                raw.gateway.account_ca = raw.gateway.account_ca.map(|file| folder.join(file));
                raw.provider.values_mut().for_each(|provider| provider.files_below(folder));
                Ok(raw)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {
                Ok(Self::default())
            }
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }

    /// What it says of models, with the providers that were added by command. What is written by
    /// hand wins over those.
    pub(crate) fn models(&self, data_dir: &Path) -> Result<ModelsConfig> {
        let mut all = providers::read(data_dir)?;
        all.extend(self.provider.clone());
        let providers = all.into_iter().map(|(name, raw)| {
            let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            raw.resolve(&name, variable).map_err(Failure::new)
        });
        Ok(self.models.clone().resolve(providers.collect::<Result<_>>()?))
    }

    pub(crate) fn names_provider(&self, name: &str) -> bool {
        self.provider.contains_key(name)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map_or_else(String::new, |line| format!(":{line}"));
            Failure::new(format!("{}{place}: {}", path.display(), error.message()))
        })
    }

    /// What the command line and the environment say wins over the file.
    pub(crate) fn resolve(mut self, data_dir: PathBuf, said: Front) -> Result<Config> {
        let file = &mut self.gateway;
        file.listen = said.listen.or(file.listen.take());
        // A variable that is there and empty says nothing.
        // An owner is the exception: one that got lost on the way must not be taken for none.
        file.owner_did = said.owner_did.or(file.owner_did.take());
        file.plc_url = said.plc_url.filter(|url| !url.is_empty()).or(file.plc_url.take());
        let said_ca = said.account_ca.filter(|file| !file.as_os_str().is_empty());
        file.account_ca = said_ca.or(file.account_ca.take());
        let said_url = said.public_url.filter(|url| !url.is_empty());
        file.public_url = said_url.or(file.public_url.take());
        // The two belong together: half of each would be a third pair.
        if said.tls_cert.is_some() || said.tls_key.is_some() {
            (file.tls_cert, file.tls_key) = (said.tls_cert, said.tls_key);
        }
        let proxies: Vec<_> =
            said.trusted_proxy.into_iter().filter(|proxy| !proxy.is_empty()).collect();
        if !proxies.is_empty() {
            file.trusted_proxies = Some(proxies);
        }
        let models = self.models(&data_dir)?;
        let mut gateway = self.gateway.resolve(data_dir)?;
        gateway.models = models;
        gateway.roles = self.roles.resolve();
        gateway.egress = self.egress.resolve()?;
        gateway.knowledge = self.knowledge.resolve().map_err(Failure::new)?;
        let machine = agent::machine();
        gateway.runs = self.runs.resolve(self.agent.clone(), machine, agent::program());
        gateway.conversations = self.conversations.resolve(self.agent);
        gateway.runs = gateway.runs.with_servers(&self.mcp);
        gateway.conversations.mcp = self.mcp;
        gateway.desktop = self.desktop.resolve(desktop::modules());
        let host_directories = self.sandboxes.host_directories;
        Ok(Config { gateway, log: self.log, host_directories })
    }
}

/// `--data`, else `$XDG_DATA_HOME/nacre`, else `~/.local/share/nacre`.
pub(crate) fn data_dir(named: Option<PathBuf>) -> Result<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = named
        .or_else(|| variable("XDG_DATA_HOME").map(|base| base.join("nacre")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/share/nacre")))
        .ok_or_else(|| Failure::new("no data directory").hint("name one with --data DIR"))?;
    std::path::absolute(&dir).map_err(|error| Failure::io(dir.display(), &error))
}

/// Makes it, for its owner only; an open one that is ours is closed to others.
pub(crate) fn prepare_data_dir(dir: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        Failure::io(dir.display(), &error).hint("choose another data directory with --data DIR")
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let metadata = fs::metadata(dir).map_err(failed)?;
    if metadata.uid() != rustix::process::getuid().as_raw() {
        return Err(Failure::new(format!("{} belongs to another user", dir.display()))
            .hint("choose another data directory with --data DIR"));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RawConfig> {
        RawConfig::parse(text, Path::new("nacre.toml"))
    }

    fn message(result: Result<impl std::fmt::Debug>) -> String {
        match result {
            Err(Failure::Error { message, .. }) => message,
            other => panic!("expected an error, got {other:?}"),
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let text = "[gateway]\nlisten = \"127.0.0.1:1\"\nlissten = \"x\"\n";
        let message = message(parse(text));
        assert!(message.starts_with("nacre.toml:3: unknown field `lissten`"), "{message}");
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let text = "[gateway]\nlisten = \"127.0.0.1:1\"\npublic_url = \"https://a.example\"\n\
                    trusted_proxies = [\"10.0.0.1\"]\ntls_cert = \"a\"\ntls_key = \"a\"\n";
        let raw = parse(text).unwrap();
        let resolve = |said| raw.clone().resolve("/data".into(), said).unwrap().gateway;
        let file = resolve(Front {
            public_url: Some(String::new()),
            trusted_proxy: vec![String::new()],
            ..Front::default()
        });
        assert_eq!(file.listen.to_string(), "127.0.0.1:1");
        assert_eq!(file.front.public, Some("https://a.example".parse().unwrap()));
        assert_eq!(file.front.proxies, ["10.0.0.1".parse().unwrap()]);
        assert_eq!(file.tls.unwrap().cert, Path::new("a"));
        let line = resolve(Front {
            listen: Some("127.0.0.1:2".to_owned()),
            tls_cert: Some("b".into()),
            tls_key: Some("b".into()),
            public_url: Some("https://b.example".to_owned()),
            owner_did: Some("did:web:alice.net".to_owned()),
            plc_url: Some("https://plc.example".to_owned()),
            account_ca: Some("ca.pem".into()),
            trusted_proxy: vec!["10.0.0.2".to_owned(), "::1".to_owned()],
        });
        assert_eq!(line.auth.owner, Some("did:web:alice.net".parse().unwrap()));
        assert_eq!(line.auth.plc, Some("https://plc.example".parse().unwrap()));
        assert_eq!(line.auth.authorities, Some("ca.pem".into()));
        assert_eq!(line.listen.to_string(), "127.0.0.1:2");
        assert_eq!(line.front.public, Some("https://b.example".parse().unwrap()));
        assert_eq!(line.front.proxies, ["10.0.0.2".parse().unwrap(), "::1".parse().unwrap()]);
        assert_eq!(line.tls.unwrap().cert, Path::new("b"));
    }

    #[test]
    fn files_that_the_file_names_are_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let text = "[gateway]\ntls_cert = \"cert.pem\"\ntls_key = \"/etc/key.pem\"\n\
                    account_ca = \"ca.pem\"\n";
        fs::write(dir.path().join(FILE), text).unwrap();
        let raw = RawConfig::load(dir.path(), None).unwrap();
        assert_eq!(raw.gateway.tls_cert, Some(dir.path().join("cert.pem")));
        assert_eq!(raw.gateway.tls_key, Some("/etc/key.pem".into()));
        assert_eq!(raw.gateway.account_ca, Some(dir.path().join("ca.pem")));
    }

    #[test]
    fn a_swap_is_taken_back_by_itself_unless_the_file_says_no() {
        let roles = |text| {
            parse(text).unwrap().resolve("/data".into(), Front::default()).unwrap().gateway.roles
        };
        assert!(roles("").auto_rollback);
        assert!(!roles("[roles]\nauto_rollback = false\n").auto_rollback);
        assert_eq!(roles("roles.watch_seconds = 30\n").watch.as_secs(), 30);
    }

    #[test]
    fn a_new_computer_gets_the_desktop_unless_the_file_says_no() {
        let seed = |text| {
            let config = parse(text).unwrap().resolve("/data".into(), Front::default()).unwrap();
            config.gateway.desktop.seed
        };
        assert!(seed(""));
        assert!(!seed("[desktop]\nseed = false\n"));
        let message = message(parse("[desktop]\nsead = false\n"));
        assert!(message.starts_with("nacre.toml:2: unknown field `sead`"), "{message}");
    }

    #[test]
    fn runs_have_the_window_and_the_servers_of_the_file() {
        let text = "[agent]\nwindow = 50000\n\
                    [mcp.time]\ncommand = [\"uvx\", \"mcp-server-time\"]\n\
                    [mcp.docs]\nurl = \"https://docs.example/mcp\"\n";
        let gateway =
            parse(text).unwrap().resolve("/data".into(), Front::default()).unwrap().gateway;
        assert_eq!(gateway.runs.window, Some(50_000));
        assert_eq!(gateway.runs.mcp.keys().collect::<Vec<_>>(), ["time"]);
        assert_eq!(gateway.conversations.mcp.len(), 2);
        assert!(gateway.runs.limits.memory_bytes.is_some_and(|bytes| bytes >= 768 << 20));
    }

    #[test]
    fn providers_of_both_files_are_there_and_the_one_written_by_hand_wins() {
        let dir = tempfile::tempdir().unwrap();
        let added = "[provider.openai]\nbase_url = \"http://added\"\n\
                     [provider.ollama]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:11434/v1\"\n";
        fs::write(dir.path().join(providers::FILE), added).unwrap();
        let text = "[provider.openai]\nbase_url = \"http://by-hand\"\nkey_file = \"k\"\n\
                    prices.\"my-*\" = { input = 1, output = 2.5 }\n[models]\ndollars_per_day = 5\n";
        let models = parse(text).unwrap().models(dir.path()).unwrap();
        let shown = format!("{models:?}");
        assert_eq!(models.providers.len(), 2);
        assert!(shown.contains("by-hand") && !shown.contains("added"), "{shown}");
        assert_eq!(models.day.dollars, nacre_gateway::Dollars::new(5.0));
        let wrong = message(parse("[provider.x]\n").unwrap().models(dir.path()));
        assert!(wrong.contains("provider \"x\": its kind is missing"), "{wrong}");
    }

    #[test]
    fn a_data_directory_is_closed_to_others() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a/b");
        prepare_data_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        prepare_data_dir(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_named_file_must_be_there_and_the_usual_one_need_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RawConfig::load(dir.path(), None).unwrap(), RawConfig::default());
        let named = dir.path().join("other.toml");
        assert!(message(RawConfig::load(dir.path(), Some(&named))).contains("no such file"));
    }
}
