//! Reports of scans and commits, the filter of a scan among them.

use tidewater::iceberg::report::{KEPT_BYTES_MAX, Report};

pub fn requests() -> Vec<Vec<u8>> {
    let filters = [
        r#"{"type":"eq","term":"customer_id","value":501}"#,
        r#"{"type":"and","left":{"type":"not-null","term":"a"},"right":{"type":"or","left":true,"right":{"type":"not","child":
            {"type":"in","term":{"type":"transform","transform":"bucket[4]","term":"b"},"values":[1,2.5,"x",null]}}}}"#,
        r#"{"type":"starts-with","term":"s","value":"pre\u0000fix"}"#,
        "false",
    ];
    let scan = |filter: &&str| {
        format!(
            r#"{{"report-type":"scan-report","table-name":"ns.t","snapshot-id":7,"filter":{filter},"schema-id":0,
            "projected-field-ids":[1],"projected-field-names":["a"],"metrics":{{"total-planning-duration":
            {{"count":1,"time-unit":"nanoseconds","total-duration":264}}}},"metadata":{{"engine":"spark"}}}}"#
        )
    };
    let commit = r#"{"report-type":"commit-report","table-name":"t","snapshot-id":7,"sequence-number":1,"operation":"append",
        "metrics":{"added-records":{"unit":"count","value":3}}}"#;
    filters.iter().map(scan).chain([commit.to_owned()]).map(String::into_bytes).collect()
}

/// What is kept is a JSON object within its bound, whatever came.
pub fn parse(input: &[u8]) -> Result<String, String> {
    let report = match Report::parse(input) {
        Err(error) => return Ok(error.to_string()),
        Ok(report) => report,
    };
    if report.json.len() > KEPT_BYTES_MAX {
        return Err(format!("{} bytes are kept", report.json.len()));
    }
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&report.json) {
        Ok(kept) => Ok(kept.keys().cloned().collect::<Vec<_>>().join(" ")),
        Err(error) => Err(format!("what is kept is no JSON object: {error}")),
    }
}
