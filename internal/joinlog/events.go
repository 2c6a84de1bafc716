package joinlog

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/jsondoc"
)

// event is one thing that a user did with a row, as its file has it: an outcome, or that the row was seen. "": it does not say.
type event struct {
	Request jsondoc.Text `json:"engine_request_id"`
	Row     jsondoc.Text `json:"id"`
	Time    jsondoc.Text `json:"time"`
	Value   jsondoc.Text `json:"value"`
	ID      jsondoc.Text `json:"event_id"`
}

// lineMax bounds a line of events.
const lineMax = 64 << 20

// readEvents calls do for each event of a file whose name says its format. Any line that is not an event is an error, since an event that
// is left out would make its row a negative.
func readEvents(name string, in io.Reader, do func(*event) error) error {
	var e event
	var next func() (line int, err error) // sets e
	switch ext := filepath.Ext(name); ext {
	case ".csv":
		rows := csv.NewReader(in)
		rows.ReuseRecord = true
		places, err := columnsOf(rows, &e)
		if err != nil {
			return err
		}
		next = func() (line int, err error) {
			row, err := rows.Read()
			if err != nil {
				return 0, err
			}
			for i, text := range row {
				*places[i] = jsondoc.Text(text)
			}
			line, _ = rows.FieldPos(0)
			return line, nil
		}
	case ".jsonl", ".ndjson":
		lines := fileio.NewLineReader(in, lineMax)
		next = func() (int, error) {
			for {
				line, _, err := lines.Next()
				if lines.Number() == 1 {
					line = fileio.WithoutMark(line)
				}
				switch {
				case err != nil:
					return 0, err
				case len(bytes.TrimSpace(line)) > 0:
					if err = json.Unmarshal(line, &e); err != nil {
						err = fmt.Errorf("line %d: %w: a line is a JSON object", lines.Number(), err)
					}
					return lines.Number(), err
				}
			}
		}
	default:
		return fmt.Errorf("the name ends in %s; events are read from .csv, .jsonl and .ndjson", errtext.Quote(ext))
	}
	for {
		e = event{}
		line, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(&e); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// columnsOf reads the head of a table, and returns where each of its columns goes.
func columnsOf(rows *csv.Reader, e *event) (places []*jsondoc.Text, err error) {
	head, err := rows.Read()
	if err == io.EOF {
		return nil, errors.New("the file is empty: its first line names the columns")
	}
	var other jsondoc.Text
	known := map[string]*jsondoc.Text{"engine_request_id": &e.Request, "id": &e.Row, "time": &e.Time, "value": &e.Value, "event_id": &e.ID}
	for i, name := range head {
		if i == 0 {
			name = string(fileio.WithoutMark([]byte(name)))
		}
		if slices.Contains(head[:i], name) {
			return nil, fmt.Errorf("line 1: the column %s stands there twice", errtext.Quote(name))
		}
		place := known[name]
		if place == nil {
			place = &other
		}
		places = append(places, place)
	}
	return places, err
}

// record returns the fields of an event: request, row, kind, event id, time and value.
func (e *event) record(kind string) (fields []string, at time.Time, err error) {
	value := 1.0
	switch {
	case e.Request == "":
		return nil, at, errors.New("engine_request_id is missing")
	case e.Row == "":
		return nil, at, errors.New("id is missing")
	case e.Time == "" && kind == kindOutcome:
		return nil, at, errors.New("time is missing")
	case e.Time != "":
		at, err = parseTime(string(e.Time))
	}
	if e.Value != "" && err == nil {
		if value, err = strconv.ParseFloat(string(e.Value), 64); err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			err = fmt.Errorf("value is %s, must be a finite number", errtext.Quote(string(e.Value)))
		}
	}
	id := ""
	if e.ID != "" {
		id = quoted(e.ID)
	}
	return []string{quoted(e.Request), quoted(e.Row), kind, id, micros(at), strconv.FormatFloat(value, 'g', -1, 64)}, at, err
}

// quoted returns a text as a JSON string, which has no control characters.
func quoted[T ~string](text T) string { return string(jsondoc.AppendString(nil, string(text))) }

// The years of times, so that their microseconds sort as texts of equal length.
const (
	yearMin = 1970
	yearMax = 9999
)

// parseTime reads RFC 3339, or seconds since 1970.
func parseTime(text string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < 1e11 {
		return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if at = at.UTC(); err != nil || at.Year() < yearMin || at.Year() > yearMax {
		return at, fmt.Errorf("time is %s, must be as 2026-11-27T22:30:00.5Z, or seconds since 1970", errtext.Quote(text))
	}
	return at, nil
}

// micros returns a time as text that sorts as times do.
func micros(t time.Time) string { return fmt.Sprintf("%020d", t.UnixMicro()) }
