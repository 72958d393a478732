//! Lines of comma-separated values. Fields with commas or quotes are quoted; line breaks become spaces.

/// One line, ending with a newline.
pub fn line<S: AsRef<str>>(fields: &[S]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quote(&field.as_ref().replace(['\n', '\r'], " "))).collect();
    quoted.join(",") + "\n"
}

fn quote(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}

/// The fields of a line, blanks around them removed; none if a quote is left open.
pub fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    (!quoted).then(|| fields.iter().map(|field| field.trim().to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = ["a", "", "MFU:25%,LRU:75%", "say \"no\"", "two\nlines"];
        let written = line(&row);
        assert_eq!(written, "a,,\"MFU:25%,LRU:75%\",\"say \"\"no\"\"\",two lines\n");
        assert_eq!(fields(written.trim_end()).unwrap(), ["a", "", "MFU:25%,LRU:75%", "say \"no\"", "two lines"]);
        assert_eq!(fields("a,\"b"), None);
    }
}
