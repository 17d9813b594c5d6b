//! Changes inputs at random: bytes of the text, and members of the JSON that it is.

use serde_json::{Map, Number, Value, json};

/// A small generator of random numbers (splitmix64): the same seed gives the same inputs.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}

const TEXTS: [&str; 16] = [
    "",
    "main",
    "v3",
    "s3://b/w/t/x",
    "\u{0}",
    "é😀",
    "bucket[0]",
    "truncate[2147483648]",
    "decimal(39, 3)",
    "fixed[0]",
    "geography(OGC:CRS84, karney)",
    "struct",
    "2024-13-45",
    "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "-1",
    "gzip",
];

const NUMBERS: [&str; 14] = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "4",
    "999",
    "1000",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
];

pub fn mutated(kept: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = dice.pick(kept).cloned().unwrap_or_default();
    for _ in 0..=dice.below(4) {
        input = match dice.below(8) {
            0 => bytes_changed(input, dice),
            1 => spliced(&input, dice.pick(kept).map_or(&[], Vec::as_slice), dice),
            _ => match serde_json::from_slice::<Value>(&input) {
                Ok(mut value) => {
                    let other = dice.pick(kept).and_then(|other| serde_json::from_slice(other).ok());
                    change(&mut value, other.as_ref(), dice);
                    serde_json::to_vec(&value).unwrap_or_default()
                }
                Err(_) => bytes_changed(input, dice),
            },
        };
    }
    input
}

fn bytes_changed(mut input: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let at = dice.below(input.len());
    match dice.below(5) {
        0 => input.truncate(at),
        1 if !input.is_empty() => input[at] ^= 1 << dice.below(8),
        2 => input.splice(at..at, b"[[[[[[[[".repeat(1 + dice.below(200))).for_each(drop),
        3 => {
            let end = (at + dice.below(40)).min(input.len());
            input.drain(at..end).for_each(drop);
        }
        _ => {
            let number = dice.pick(&NUMBERS).copied().unwrap_or_default();
            input.splice(at..at, number.bytes()).for_each(drop);
        }
    }
    input
}

fn spliced(one: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let (cut, from) = (dice.below(one.len()), dice.below(other.len()));
    [&one[..cut], &other[from..]].concat()
}

/// Goes down to a random place and changes what is there.
fn change(value: &mut Value, other: Option<&Value>, dice: &mut Dice) {
    if dice.below(4) > 0 {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let at = dice.below(members.len());
                if dice.below(6) == 0 {
                    return change_members(members, at, dice);
                }
                if let Some((_, member)) = members.iter_mut().nth(at) {
                    return change(member, other, dice);
                }
            }
            Value::Array(elements) if !elements.is_empty() => {
                let at = dice.below(elements.len());
                if dice.below(5) == 0 {
                    return change_elements(elements, at, dice);
                }
                return change(&mut elements[at], other, dice);
            }
            _ => {}
        }
    }
    *value = replacement(value, other, dice);
}

fn change_members(members: &mut Map<String, Value>, at: usize, dice: &mut Dice) {
    let Some((name, member)) = members.iter().nth(at).map(|(name, member)| (name.clone(), member.clone())) else {
        return;
    };
    match dice.below(3) {
        0 => drop(members.remove(&name)),
        1 => {
            let text = dice.pick(&TEXTS).copied().unwrap_or_default();
            members.insert(text.to_owned(), member);
        }
        _ => {
            let to = members.keys().nth(dice.below(members.len())).cloned();
            to.map(|to| members.insert(to, member));
        }
    }
}

fn change_elements(elements: &mut Vec<Value>, at: usize, dice: &mut Dice) {
    match dice.below(3) {
        0 => drop(elements.remove(at)),
        1 => elements.push(elements[at].clone()),
        _ => {
            let to = dice.below(elements.len());
            elements.swap(at, to);
        }
    }
}

fn replacement(value: &Value, other: Option<&Value>, dice: &mut Dice) -> Value {
    match dice.below(7) {
        0 => Value::Null,
        1 => dice.pick(&TEXTS).map_or(Value::Null, |text| json!(text)),
        2 | 3 => {
            let number = dice.pick(&NUMBERS).copied().unwrap_or("0");
            number.parse::<Number>().map_or(Value::Null, Value::Number)
        }
        4 => json!([value]),
        5 => json!({"type": value}),
        _ => other.map_or(Value::Null, |other| somewhere(other, dice).clone()),
    }
}

/// A random part of a value.
fn somewhere<'a>(value: &'a Value, dice: &mut Dice) -> &'a Value {
    let deeper = match value {
        Value::Object(members) => members.values().nth(dice.below(members.len())),
        Value::Array(elements) => elements.get(dice.below(elements.len())),
        _ => None,
    };
    match deeper {
        Some(deeper) if dice.below(5) > 0 => somewhere(deeper, dice),
        _ => value,
    }
}
