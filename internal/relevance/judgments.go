package relevance

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/jsondoc"
)

// lineMax bounds a line of judgments.
const lineMax = 64 << 10

// judgment is a line of judgments. "": it does not say.
type judgment struct {
	Request jsondoc.Text `json:"request"`
	ID      jsondoc.Text `json:"id"`
	Grade   jsondoc.Text `json:"grade"`
}

// Read returns the judgments of a file, by request. The end of its name says its form: .qrels as trec_eval reads it (request, a column without
// meaning, id, grade), .csv, whose first line names the columns request, id and grade, or .jsonl and .ndjson with these members. A line that is none of
// these is an error, which says its number: a judgment that were left out would change figures.
func Read(name string, in io.Reader) (map[string]Grades, error) {
	var parse func(line []byte, j *judgment) error
	switch ext := filepath.Ext(name); ext {
	case ".qrels":
		parse = parseQrels
	case ".csv":
		parse = new(table).parse
	case ".jsonl", ".ndjson":
		parse = func(line []byte, j *judgment) error { return json.Unmarshal(line, j) }
	default:
		return nil, fmt.Errorf("the name ends in %s; judgments are read from .qrels, .csv, .jsonl and .ndjson", errtext.Quote(ext))
	}
	all := map[string]Grades{}
	for lines := fileio.NewLineReader(in, lineMax); ; {
		line, _, err := lines.Next()
		if err == io.EOF {
			break
		}
		if lines.Number() == 1 {
			line = fileio.WithoutMark(line)
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var j judgment
		if err = parse(line, &j); err == nil {
			err = j.add(all)
		}
		if err != nil && err != errHead {
			return nil, fmt.Errorf("line %d: %w", lines.Number(), err)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the file has no judgments")
	}
	return all, nil
}

// add adds a judgment to those of its request.
func (j *judgment) add(all map[string]Grades) error {
	for _, member := range [...]struct{ name, text string }{{"request", string(j.Request)}, {"id", string(j.ID)}, {"grade", string(j.Grade)}} {
		if member.text == "" {
			return errors.New(member.name + " is missing")
		}
		if !utf8.ValidString(member.text) {
			return errors.New(member.name + " is not in UTF-8")
		}
		if strings.TrimSpace(member.text) != member.text {
			return fmt.Errorf("%s is %s, with white space at an end, which no answer has", member.name, errtext.Quote(member.text))
		}
	}
	grade, err := strconv.Atoi(string(j.Grade))
	if err != nil || grade < Unjudged || grade > gradeMost {
		return fmt.Errorf("grade is %s, must be a whole number from 0 to %d, or -1 of a row that nobody has judged", errtext.Quote(string(j.Grade)), gradeMost)
	}
	grades := all[string(j.Request)]
	if grades == nil {
		grades = Grades{}
		all[string(j.Request)] = grades
	}
	if former, ok := grades[string(j.ID)]; ok && former != grade {
		return fmt.Errorf("id %s of request %s has grade %d, and had %d before", errtext.Quote(string(j.ID)), errtext.Quote(string(j.Request)), grade, former)
	}
	grades[string(j.ID)] = grade
	return nil
}

func parseQrels(line []byte, j *judgment) error {
	fields := strings.Fields(string(line))
	if len(fields) != 4 {
		return fmt.Errorf("a line has a request, a column without meaning, an id and a grade, not %s", errtext.Count(len(fields), "field"))
	}
	j.Request, j.ID, j.Grade = jsondoc.Text(fields[0]), jsondoc.Text(fields[2]), jsondoc.Text(fields[3])
	return nil
}

// table reads lines of a CSV. One goroutine.
type table struct{ head []string }

// errHead says that a line is the head of a table.
var errHead = errors.New("a head")

func (t *table) parse(line []byte, j *judgment) error {
	rows := csv.NewReader(bytes.NewReader(line))
	rows.FieldsPerRecord = len(t.head)
	row, err := rows.Read()
	if at := (*csv.ParseError)(nil); errors.As(err, &at) {
		return at.Err // Its line is that of the row.
	}
	if err != nil {
		return err
	}
	places := map[string]*jsondoc.Text{"request": &j.Request, "id": &j.ID, "grade": &j.Grade}
	if t.head == nil {
		for name := range places {
			if i := slices.Index(row, name); i < 0 || slices.Contains(row[i+1:], name) {
				return errors.New("the first line names the columns: request, id and grade, each once")
			}
		}
		t.head = row
		return errHead
	}
	for i, name := range t.head {
		if place := places[name]; place != nil {
			*place = jsondoc.Text(row[i])
		}
	}
	return nil
}
