//! What a sandbox may reach. Names and addresses in, a verdict out; only which addresses are this
//! machine's own is asked of the kernel.
//!
//! A rule that denies is stronger than one that allows, wherever it stands. A name is judged before
//! it is resolved, so that a sandbox that may reach nothing cannot tell names anything either, and
//! every address it leads to is judged after.

use std::fmt;
use std::net::IpAddr;

use nacre_atproto::is_public;
use nacre_wire::egress::{EgressEffect, EgressMode, EgressRule};
use nacre_wire::{ApiError, ErrorKind};

use super::own::is_own;
use super::rule::{BadPattern, Pattern, Rule};
use super::target::{Host, Target};

/// The mode and the rules in force for one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Policy {
    pub(crate) mode: EgressMode,
    pub(crate) rules: Vec<Rule>,
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    ModeNone,
    Denied(String),
    NotListed,
    /// A name that only this machine or its network knows.
    LocalName,
    Private(IpAddr),
    /// What listens here may be closed to everybody else.
    Own(IpAddr),
}

impl Policy {
    /// Judges what was asked for, before anything is looked up.
    pub(crate) fn admit(&self, target: &Target) -> Result<(), Refusal> {
        if self.mode == EgressMode::None {
            return Err(Refusal::ModeNone);
        }
        let denied = |rule: &&Rule| match target.host {
            Host::Name(_) => rule.pattern.names(target),
            Host::Address(address) => {
                rule.pattern.names(target) || rule.pattern.reaches(address, target.port)
            }
        };
        if let Some(rule) = self.with(EgressEffect::Deny).find(denied) {
            return Err(Refusal::Denied(rule.pattern.to_string()));
        }
        if self.mode == EgressMode::AllowList && !self.lists(target) {
            return Err(Refusal::NotListed);
        }
        if target.host.is_local_name() && !self.opens_name(target) {
            return Err(Refusal::LocalName);
        }
        match target.host {
            Host::Address(address) => self.judge(target, address),
            Host::Name(_) => Ok(()),
        }
    }

    /// Judges an address that an admitted target leads to.
    pub(crate) fn judge(&self, target: &Target, address: IpAddr) -> Result<(), Refusal> {
        let denied = |rule: &&Rule| rule.pattern.reaches(address, target.port);
        if let Some(rule) = self.with(EgressEffect::Deny).find(denied) {
            return Err(Refusal::Denied(rule.pattern.to_string()));
        }
        let opened = || {
            self.opens_name(target)
                || self
                    .with(EgressEffect::Allow)
                    .any(|rule| rule.pattern.holds(address, target.port))
        };
        match is_public(address) {
            true if is_own(address) && !opened() => Err(Refusal::Own(address)),
            false if !opened() => Err(Refusal::Private(address)),
            true | false => Ok(()),
        }
    }

    /// Both, for a connection that is open.
    pub(crate) fn still(&self, target: &Target, address: IpAddr) -> Result<(), Refusal> {
        self.admit(target).and_then(|()| self.judge(target, address))
    }

    fn lists(&self, target: &Target) -> bool {
        self.with(EgressEffect::Allow).any(|rule| {
            let by_address = match target.host {
                Host::Address(address) => rule.pattern.holds(address, target.port),
                Host::Name(_) => false,
            };
            rule.pattern.names(target) || by_address
        })
    }

    fn opens_name(&self, target: &Target) -> bool {
        self.with(EgressEffect::Allow).any(|rule| rule.private && rule.pattern.names(target))
    }

    fn with(&self, effect: EgressEffect) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.effect == effect)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ModeNone => f.write_str("this sandbox may reach nothing (mode none)"),
            Self::Denied(rule) => write!(f, "the rule \"deny {rule}\" is against it"),
            Self::NotListed => f.write_str("it is not on the list of what is allowed"),
            Self::LocalName => f.write_str("its name is one of this machine or its network"),
            Self::Own(address) => write!(f, "its address {address} is one of this machine"),
            Self::Private(address) => {
                write!(f, "its address {address} is not on the public internet")
            }
        }
    }
}

impl Refusal {
    pub(crate) fn error(&self, sandbox: &str, target: &Target) -> ApiError {
        let allow = format!("nacre egress allow -s {sandbox} {target}");
        let hint = match self {
            Self::ModeNone => format!("nacre egress mode -s {sandbox} open"),
            Self::Denied(rule) => format!("nacre egress forget -s {sandbox} {rule}"),
            Self::NotListed => allow,
            Self::LocalName => format!("{allow} --private"),
            Self::Own(_) | Self::Private(_) => match target.host {
                Host::Name(_) => format!("{allow} --private"),
                Host::Address(_) => allow,
            },
        };
        ApiError::new(ErrorKind::Permission, format!("{target} is closed: {self}"))
            .hint(format!("on the host: {hint}"))
    }
}

impl TryFrom<&EgressRule> for Rule {
    type Error = BadPattern;

    fn try_from(rule: &EgressRule) -> Result<Self, BadPattern> {
        let pattern: Pattern = rule.target.parse()?;
        Ok(Self { effect: rule.effect, pattern, private: rule.private })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: EgressMode, rules: &[&str]) -> Policy {
        let rule = |text: &&str| {
            let mut words = text.split(' ');
            let effect = EgressEffect::parse(words.next().unwrap()).unwrap();
            let pattern = words.next().unwrap().parse().unwrap();
            Rule { effect, pattern, private: words.next() == Some("private") }
        };
        Policy { mode, rules: rules.iter().map(rule).collect() }
    }

    fn target(text: &str) -> Target {
        let (host, port) = text.rsplit_once(':').unwrap();
        Target { host: host.parse().unwrap(), port: port.parse().unwrap() }
    }

    fn check(policy: &Policy, to: &str, address: &str, open: bool) {
        let verdict = policy.still(&target(to), address.parse().unwrap());
        assert_eq!(verdict.is_ok(), open, "{to} at {address}: {verdict:?} by {policy:?}");
    }

    const PRIVATE: [&str; 27] = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.8.8.8",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.80",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a9fe:a9fe",
        "2001::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    #[test]
    fn every_private_form_is_closed_by_name_and_by_address() {
        let open = Policy::default();
        for address in PRIVATE {
            check(&open, "rebound.example.com:80", address, false);
            let literal = Target { host: Host::Address(address.parse().unwrap()), port: 80 };
            assert!(open.admit(&literal).is_err(), "{address}");
        }
        check(&open, "example.com:443", "1.1.1.1", true);
        check(&open, "[2606:4700::1]:443", "2606:4700::1", true);
    }

    #[test]
    fn local_names_are_not_even_looked_up() {
        for name in ["localhost:80", "printer.local:80", "db:5432", "metadata.google.internal:80"] {
            assert_eq!(Policy::default().admit(&target(name)), Err(Refusal::LocalName), "{name}");
        }
        let opened = policy(EgressMode::Open, &["allow db:5432 private"]);
        check(&opened, "db:5432", "10.0.0.5", true);
        check(&opened, "db:80", "10.0.0.5", false);
    }

    #[test]
    fn a_rule_opens_what_is_private_by_network_or_by_a_name_that_says_so() {
        let by_net = policy(EgressMode::Open, &["allow 10.1.0.0/16:443"]);
        check(&by_net, "git.corp.example:443", "10.1.2.3", true);
        check(&by_net, "git.corp.example:80", "10.1.2.3", false);
        check(&by_net, "git.corp.example:443", "10.2.2.3", false);
        check(&by_net, "10.1.2.3:443", "10.1.2.3", true);
        check(&by_net, "[::ffff:10.1.2.3]:443", "::ffff:10.1.2.3", false);
        let by_name = policy(EgressMode::Open, &["allow *.corp.example private"]);
        check(&by_name, "git.corp.example:80", "10.1.2.3", true);
        let listed = policy(EgressMode::AllowList, &["allow *.corp.example"]);
        check(&listed, "git.corp.example:80", "10.1.2.3", false);
        check(&listed, "git.corp.example:80", "1.1.1.1", true);
    }

    #[test]
    fn an_allow_list_is_all_there_is() {
        let listed =
            policy(EgressMode::AllowList, &["allow *.example.com:443", "allow 1.1.1.0/24"]);
        check(&listed, "a.example.com:443", "8.8.8.8", true);
        check(&listed, "a.example.com:80", "8.8.8.8", false);
        check(&listed, "1.1.1.1:53", "1.1.1.1", true);
        // Looking it up to see whether its address is listed would tell a name server something.
        assert_eq!(listed.admit(&target("other.net:443")), Err(Refusal::NotListed));
    }

    #[test]
    fn deny_is_stronger_and_none_is_nothing() {
        let rules = ["allow * private", "deny *.evil.com", "deny 10.0.0.0/8", "deny *:25"];
        let open = policy(EgressMode::Open, &rules);
        check(&open, "a.evil.com:443", "1.1.1.1", false);
        check(&open, "good.com:443", "10.0.0.1", false);
        check(&open, "good.com:443", "::ffff:10.0.0.1", false);
        check(&open, "[64:ff9b::a00:1]:443", "64:ff9b::a00:1", false);
        check(&open, "good.com:25", "1.1.1.1", false);
        check(&open, "good.com:443", "192.168.0.1", true);
        let none = policy(EgressMode::None, &["allow *"]);
        assert_eq!(none.admit(&target("example.com:443")), Err(Refusal::ModeNone));
    }

    #[test]
    fn a_refusal_says_how_to_allow_it() {
        let to = target("git.corp.example:443");
        let error = Refusal::Private("10.1.2.3".parse().unwrap()).error("live", &to);
        assert_eq!(
            (error.kind, error.message.as_str(), error.hint.as_deref()),
            (
                ErrorKind::Permission,
                "git.corp.example:443 is closed: its address 10.1.2.3 is not on the public internet",
                Some("on the host: nacre egress allow -s live git.corp.example:443 --private")
            )
        );
    }
}
