use nacre_wire::events::{Event, EventMessage};

use super::Events;
use super::ring::Found;

#[test]
fn what_is_published_is_numbered_and_kept() {
    let events = Events::new();
    events.publish(Event::FilesLost);
    let gone = Event::ProcessGone { name: "web".to_owned() };
    events.publish(gone.clone());
    let Found::Event(2, text) = events.ring().after(1) else { panic!("the second expected") };
    let message: EventMessage = serde_json::from_str(&text).unwrap();
    assert_eq!(message, EventMessage { seq: 2, event: gone });
}

#[test]
fn every_life_has_a_name_of_its_own() {
    assert_ne!(Events::new().run(), Events::new().run());
}
