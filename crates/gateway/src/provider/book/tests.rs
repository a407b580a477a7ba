use super::*;
use crate::provider::money::Dollars;

const NOON: u64 = 1000 * DAY_MS + DAY_MS / 2;

struct Case {
    token: Arc<str>,
    provider: Arc<str>,
    accounts: Vec<(Account, Limits)>,
    rate: Option<u32>,
    ended: CancellationToken,
}

impl Case {
    fn new(accounts: Vec<(Account, Limits)>) -> Self {
        Self {
            token: "t".into(),
            provider: "openai".into(),
            accounts,
            rate: None,
            ended: CancellationToken::new(),
        }
    }

    fn opening(&self, tokens: u64, now: u64) -> Opening<'_> {
        Opening {
            token: &self.token,
            token_name: "test",
            of_run: false,
            token_ended: &self.ended,
            provider: &self.provider,
            accounts: &self.accounts,
            requests_per_minute: self.rate,
            reservation: amount(tokens),
            now,
        }
    }
}

fn amount(tokens: u64) -> Amount {
    Amount { tokens, dollars: Dollars(tokens) }
}

fn most(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), dollars: None }
}

#[test]
fn of_many_at_once_exactly_as_many_pass_as_fit() {
    let book = Book::default();
    let case = Case::new(vec![(Account::Token("t".into()), most(100))]);
    let passed = std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..50).map(|_| scope.spawn(|| book.open(&case.opening(60, NOON)).is_ok())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).filter(|passed| *passed).count()
    });
    assert_eq!(passed, 1);
}

#[test]
fn what_was_used_takes_the_place_of_what_was_reserved() {
    let book = Book::default();
    let account = Account::Token("t".into());
    let case = Case::new(vec![(account.clone(), most(100))]);
    let call = book.open(&case.opening(90, NOON)).unwrap();
    assert_eq!(book.used(&account, NOON), amount(90));
    assert!(book.open(&case.opening(11, NOON)).is_err());
    book.settle(call.number, amount(20));
    assert_eq!(book.used(&account, NOON), amount(20));
    // Twice is once.
    book.settle(call.number, amount(20));
    assert_eq!(book.used(&account, NOON), amount(20));
    assert!(book.open(&case.opening(80, NOON)).is_ok());
}

#[test]
fn a_day_begins_again_and_a_token_does_not() {
    let book = Book::default();
    let accounts = vec![(Account::Token("t".into()), most(1000)), (Account::Day, most(100))];
    let case = Case::new(accounts);
    let over_night = book.open(&case.opening(100, NOON)).unwrap();
    let refused = book.open(&case.opening(1, NOON)).unwrap_err();
    assert_eq!(
        (refused.reason, refused.after),
        (Reason::Budget, Some(Duration::from_secs(43_200)))
    );
    assert!(
        refused.message.contains("100 tokens") && refused.message.contains("00:00 UTC"),
        "{refused:?}"
    );
    let tomorrow = NOON + DAY_MS;
    assert!(book.open(&case.opening(50, tomorrow)).is_ok());
    book.settle(over_night.number, amount(10));
    assert_eq!(book.used(&Account::Day, tomorrow), amount(50));
    assert_eq!(book.used(&Account::Token("t".into()), tomorrow), amount(60));
}

#[test]
fn dollars_are_a_budget_too() {
    let book = Book::default();
    let limits = Limits { tokens: None, dollars: Some(Dollars(5)) };
    let case = Case::new(vec![(Account::Provider("openai".into()), limits)]);
    assert!(book.open(&case.opening(5, NOON)).is_ok());
    let refused = book.open(&case.opening(1, NOON)).unwrap_err();
    assert!(refused.message.contains("calls to openai"), "{refused:?}");
}

#[test]
fn a_minute_has_so_many_requests() {
    let book = Book::default();
    let case = Case { rate: Some(2), ..Case::new(Vec::new()) };
    for _ in 0..2 {
        book.open(&case.opening(0, NOON)).unwrap();
    }
    let refused = book.open(&case.opening(0, NOON + 20_000)).unwrap_err();
    assert_eq!((refused.reason, refused.after), (Reason::Rate, Some(Duration::from_secs(40))));
    assert!(book.open(&case.opening(0, NOON + MINUTE_MS)).is_ok());
}

#[test]
fn a_stop_ends_what_is_under_way_and_lets_nothing_in() {
    let book = Book::default();
    let (one, other) =
        (Case::new(Vec::new()), Case { provider: "other".into(), ..Case::new(Vec::new()) });
    let (here, there) =
        (book.open(&one.opening(1, NOON)).unwrap(), book.open(&other.opening(1, NOON)).unwrap());
    assert_eq!(book.stop(Some("openai")), 1);
    assert!(here.end.is_cancelled() && !there.end.is_cancelled());
    assert_eq!(book.open(&one.opening(1, NOON)).unwrap_err().reason, Reason::Stopped);
    assert!(book.open(&other.opening(1, NOON)).is_ok());
    assert_eq!(book.stop(None), 3);
    assert!(book.open(&other.opening(1, NOON)).is_err());
    book.start(None);
    assert!(book.open(&other.opening(1, NOON)).is_ok());
    assert!(book.open(&one.opening(1, NOON)).is_err());
    book.start(Some("openai"));
    assert!(book.open(&one.opening(1, NOON)).is_ok());
}

#[test]
fn a_token_that_ended_opens_nothing_and_what_it_has_ends() {
    let book = Book::default();
    let case = Case::new(Vec::new());
    let call = book.open(&case.opening(1, NOON)).unwrap();
    case.ended.cancel();
    assert_eq!(book.end_token("t"), 1);
    assert!(call.end.is_cancelled());
    assert_eq!(book.open(&case.opening(1, NOON)).unwrap_err().reason, Reason::Unauthorized);
}
