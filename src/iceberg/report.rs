//! Reports that engines send of their scans and commits (REST specification, "ReportMetricsRequest").
//!
//! Shapes are checked, and every known member is kept as it was written. What is kept is bounded: where a report is
//! larger, its largest members are left out and named instead. Unknown members are not kept.

use super::{
    Error, Result, ensure,
    json::{
        Members, Reader,
        write::{Object, into_text, string},
    },
};

/// Longest text that is kept of a report. Bytes.
pub const KEPT_BYTES_MAX: usize = 8 << 10;
/// The member that names those left out.
const LEFT_OUT: &str = "left-out";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    Scan,
    Commit,
}

/// A report that can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub kind: ReportKind,
    /// A JSON object of at most [`KEPT_BYTES_MAX`] bytes.
    pub json: String,
}

impl Report {
    /// # Errors
    /// `Error::Invalid` for malformed JSON, missing members, wrong types, and kinds of report that the specification
    /// does not name.
    pub fn parse(bytes: &[u8]) -> Result<Report> {
        let mut members = Reader::whole(bytes, Members::read)?;
        let kind = members.required("report-type", Reader::string)?;
        // The reference reader ignores case and takes underscores.
        match kind.to_ascii_lowercase().replace('_', "-").as_str() {
            "scan-report" => Report::scan(members),
            "commit-report" => Report::commit(members),
            _ => Err(Error::Invalid(format!("unknown report-type: {kind}"))),
        }
    }

    fn scan(mut members: Members<'_>) -> Result<Report> {
        let mut kept = Kept::default();
        kept.take(&mut members, "table-name", |reader, key| reader.string(key).map(drop))?;
        kept.take(&mut members, "snapshot-id", |reader, key| reader.int64(key).map(drop))?;
        kept.take(&mut members, "schema-id", |reader, key| reader.int32(key).map(drop))?;
        kept.take(&mut members, "filter", check_filter)?;
        kept.take(&mut members, "projected-field-ids", |reader, key| reader.int32_list(key).map(drop))?;
        kept.take(&mut members, "projected-field-names", |reader, key| reader.string_list(key).map(drop))?;
        kept.finish(ReportKind::Scan, members)
    }

    fn commit(mut members: Members<'_>) -> Result<Report> {
        let mut kept = Kept::default();
        kept.take(&mut members, "table-name", |reader, key| reader.string(key).map(drop))?;
        kept.take(&mut members, "snapshot-id", |reader, key| reader.int64(key).map(drop))?;
        kept.take(&mut members, "sequence-number", |reader, key| reader.int64(key).map(drop))?;
        kept.take(&mut members, "operation", |reader, key| reader.string(key).map(drop))?;
        kept.finish(ReportKind::Commit, members)
    }
}

/// Checked members and their text.
#[derive(Default)]
struct Kept<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Kept<'a> {
    fn take(
        &mut self,
        members: &mut Members<'a>,
        key: &'static str,
        check: impl FnOnce(&mut Reader<'a>, &str) -> Result<()>,
    ) -> Result<()> {
        let text = members.required(key, |reader, key| text_of(reader, key, check))?;
        self.0.push((key, text));
        Ok(())
    }

    /// Takes what both kinds of report end with.
    fn finish(mut self, kind: ReportKind, mut members: Members<'a>) -> Result<Report> {
        self.take(&mut members, "metrics", |reader, _| {
            reader.members(|reader, name| reader.optional(|reader| check_metric(reader, name)).map(drop))
        })?;
        let check = |reader: &mut Reader<'a>, key: &str| reader.string_map(key).map(drop);
        if let Some(text) = members.optional("metadata", |reader, key| text_of(reader, key, check))? {
            self.0.push(("metadata", text));
        }
        Ok(Report { kind, json: self.within(KEPT_BYTES_MAX) })
    }

    /// The members as one object, without the largest ones where it would be longer than `bytes_max`.
    fn within(mut self, bytes_max: usize) -> String {
        let mut left_out = Vec::new();
        loop {
            let json = self.json(&left_out);
            let largest = self.0.iter().enumerate().max_by_key(|(_, (_, text))| text.len());
            match largest.map(|(at, _)| at) {
                Some(at) if json.len() > bytes_max => left_out.push(self.0.remove(at).0),
                _ => return json,
            }
        }
    }

    fn json(&self, left_out: &[&str]) -> String {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        for (key, text) in &self.0 {
            object.raw(key, text);
        }
        if !left_out.is_empty() {
            object.array(LEFT_OUT, left_out, |out, name| string(out, name));
        }
        object.end();
        into_text(out)
    }
}

/// The text of a value that `check` reads.
fn text_of<'a>(
    reader: &mut Reader<'a>,
    key: &str,
    check: impl FnOnce(&mut Reader<'a>, &str) -> Result<()>,
) -> Result<&'a str> {
    let start = reader.start();
    check(reader, key)?;
    Ok(reader.since(start))
}

/// A predicate: true, false, or an object with a type. What it says is the engines' business.
fn check_filter(reader: &mut Reader<'_>, key: &str) -> Result<()> {
    if !reader.is_object() {
        return reader.boolean(key).map(drop);
    }
    Members::read(reader)?.required("type", |reader, _| reader.string("the type of a filter")).map(drop)
}

/// `CounterResult` or `TimerResult`.
fn check_metric(reader: &mut Reader<'_>, name: &str) -> Result<()> {
    ensure(reader.is_object(), || format!("the metric {name} must be an object"))?;
    let mut members = Members::read(reader)?;
    if members.optional("time-unit", Reader::string)?.is_some() {
        members.required("count", Reader::int64)?;
        members.required("total-duration", Reader::int64)?;
    } else {
        members.required("unit", Reader::string)?;
        members.required("value", Reader::int64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    const SCAN: &str = include_str!("../../tests/data/metrics/scan-report.json");
    const COMMIT: &str = include_str!("../../tests/data/metrics/commit-report.json");

    fn scan() -> Value {
        serde_json::from_str(SCAN).unwrap()
    }

    fn check(report: &Value, expected: Expect) {
        let shown = match Report::parse(report.to_string().as_bytes()) {
            Ok(report) => format!("{:?}", report.kind),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    fn check_with(member: &str, value: Value, expected: Expect) {
        let mut report = scan();
        report[member] = value;
        check(&report, expected);
    }

    #[test]
    fn what_writers_send_is_kept_whole() {
        for (text, kind) in [(SCAN, ReportKind::Scan), (COMMIT, ReportKind::Commit)] {
            let report = Report::parse(text.as_bytes()).unwrap();
            assert_eq!(report.kind, kind);
            let mut sent: Value = serde_json::from_str(text).unwrap();
            sent.as_object_mut().unwrap().remove("report-type");
            assert_eq!(serde_json::from_str::<Value>(&report.json).unwrap(), sent);
        }
        let spelled = SCAN.replace("scan-report", "SCAN_REPORT");
        assert_eq!(Report::parse(spelled.as_bytes()).unwrap().kind, ReportKind::Scan);
    }

    #[test]
    fn filters_of_either_form_are_taken() {
        for filter in [
            json!(true),
            json!({"type": "eq", "term": "id", "value": "(1-digit-int)"}),
            json!({"type": "not", "child": {"type": "is-null", "child": {"type": "reference", "name": "a"}}}),
        ] {
            check_with("filter", filter, expect!["Scan"]);
        }
    }

    #[test]
    fn reports_of_another_shape_are_refused() {
        check(&json!([]), expect!["malformed JSON: expected an object, found an array"]);
        check(&json!({}), expect!["missing field: report-type"]);
        check(&json!({"report-type": "tide-report"}), expect!["unknown report-type: tide-report"]);
        check(&json!({"report-type": "commit-report"}), expect!["missing field: table-name"]);
        check_with("snapshot-id", json!(null), expect!["missing field: snapshot-id"]);
        check_with("snapshot-id", json!("1"), expect!["snapshot-id must be a 64-bit integer"]);
        check_with("schema-id", json!(1.5), expect!["schema-id must be a 32-bit integer"]);
        check_with("filter", json!("true"), expect!["filter must be true or false"]);
        check_with("filter", json!({"term": "a"}), expect!["missing field: type"]);
        check_with("projected-field-ids", json!(["a"]), expect!["projected-field-ids must be a 32-bit integer"]);
        check_with("projected-field-names", json!([1]), expect!["projected-field-names must be a string"]);
        check_with("metrics", json!([]), expect!["malformed JSON: expected an object, found an array"]);
        check_with("metrics", json!({"a": 1}), expect!["the metric a must be an object"]);
        check_with("metrics", json!({"a": {"unit": "count"}}), expect!["missing field: value"]);
        check_with(
            "metrics",
            json!({"a": {"time-unit": "seconds", "count": 1}}),
            expect!["missing field: total-duration"],
        );
        check_with("metadata", json!({"a": 1}), expect!["metadata: the value of a must be a string"]);
        assert!(Report::parse(b"").is_err() && Report::parse(b"\xff").is_err());
    }

    #[test]
    fn absent_metrics_are_no_error() {
        check_with("metrics", json!({"result-data-files": null}), expect!["Scan"]);
        check_with("metadata", json!(null), expect!["Scan"]);
    }

    #[test]
    fn what_is_too_long_is_left_out_and_named() {
        let mut report = scan();
        report["filter"] = json!({"type": "in", "term": "a", "values": vec!["x".repeat(100); 1_000]});
        report["projected-field-names"] = json!(vec!["n".repeat(100); 80]);
        let kept = Report::parse(report.to_string().as_bytes()).unwrap().json;
        assert!(kept.len() <= KEPT_BYTES_MAX, "{}", kept.len());
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["left-out"], json!(["filter", "projected-field-names"]));
        assert_eq!((&kept["filter"], &kept["metrics"]), (&Value::Null, &report["metrics"]));
    }
}
