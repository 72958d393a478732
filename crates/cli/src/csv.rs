//! Lines and tables of comma-separated values. Fields with commas or quotes are quoted; line breaks become spaces.

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

/// A table whose cells are found by the names of their columns.
pub struct Csv {
    head: Vec<String>,
    lines: Vec<(usize, Vec<String>)>,
}

/// One line of a table.
pub struct Line<'a> {
    head: &'a [String],
    /// From 1, for messages.
    number: usize,
    cells: &'a [String],
}

impl Csv {
    pub fn parse(text: &str) -> Result<Csv, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, head) = lines.next().ok_or("the table is empty")?;
        let head = fields(head).ok_or("the first line has an open quote")?;
        let cells = |(index, line): (usize, &str)| {
            fields(line).map(|cells| (index + 1, cells)).ok_or(format!("line {}: a quote is left open", index + 1))
        };
        Ok(Csv { head, lines: lines.map(cells).collect::<Result<_, _>>()? })
    }

    pub fn has(&self, column: &str) -> bool {
        self.head.iter().any(|name| name == column)
    }

    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|(number, cells)| Line { head: &self.head, number: *number, cells })
    }
}

impl Line<'_> {
    /// The cell of a column; empty where there is none.
    pub fn text(&self, column: &str) -> &str {
        let place = self.head.iter().position(|name| name == column);
        place.and_then(|place| self.cells.get(place)).map_or("", String::as_str)
    }

    /// A number, or nothing where the cell is empty.
    pub fn count(&self, column: &str) -> Result<Option<u64>, String> {
        match self.text(column) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| format!("line {}: `{text}` is no count of {column}", self.number))
            }
        }
    }
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

    #[test]
    fn columns_go_by_name_and_cells_may_be_quoted_or_missing() {
        let csv = Csv::parse("a, b ,c\n1,\"x, y\",3\n\nten\n").unwrap();
        let lines: Vec<Line> = csv.lines().collect();
        assert_eq!((lines[0].text("b"), lines[0].count("c")), ("x, y", Ok(Some(3))));
        assert_eq!((lines[1].text("b"), lines[1].count("c"), lines[1].text("d")), ("", Ok(None), ""));
        assert!(lines[1].count("a").unwrap_err().starts_with("line 4: `ten`"));
        assert!(csv.has("b") && !csv.has("x") && Csv::parse("\n").is_err() && Csv::parse("a\n\"b").is_err());
    }
}
