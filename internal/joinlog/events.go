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
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// event is one thing that a user did with a row: an outcome, or that the row was seen.
type event struct {
	request, row string    // as JSON strings, which have no control characters
	id           string    // likewise; "": it has none
	at           time.Time // zero: it does not say
	value        float64
}

// The members of an event in JSON, and its columns in CSV.
const (
	memberRequest, memberRow, memberTime, memberValue, memberEvent = "engine_request_id", "id", "time", "value", "event_id"
)

// readEvents calls do for each event of a file whose name says its format. Any line that is not an event is an error, since an event that
// is left out would make its row a negative. timed says that each event must have a time.
func readEvents(name string, in io.Reader, timed bool, do func(event) error) error {
	switch ext := filepath.Ext(name); ext {
	case ".csv":
		return readCSV(in, timed, do)
	case ".jsonl", ".ndjson":
		return readJSON(in, timed, do)
	default:
		return fmt.Errorf("the name ends in %s; events are read from .csv, .jsonl and .ndjson", errtext.Quote(ext))
	}
}

func readJSON(in io.Reader, timed bool, do func(event) error) error {
	lines := fileio.NewLineReader(in, lineMax)
	for {
		line, _, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		fields := make(map[string]jsontext.Value)
		if err := json.Unmarshal(line, &fields); err != nil {
			return fmt.Errorf("line %d: %w: a line is a JSON object", lines.Number(), err)
		}
		texts := make(map[string]string, len(fields))
		for _, name := range [...]string{memberRequest, memberRow, memberTime, memberValue, memberEvent} {
			if v, ok := fields[name]; ok && v.Kind() != 'n' {
				if texts[name], err = plainText(v); err != nil {
					return fmt.Errorf("line %d: %s: %w", lines.Number(), name, err)
				}
			}
		}
		if err := takeEvent(texts, timed, do); err != nil {
			return fmt.Errorf("line %d: %w", lines.Number(), err)
		}
	}
}

// plainText returns a string without its quotes, or a number as it is written.
func plainText(v jsontext.Value) (string, error) {
	switch v.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		return string(text), err
	case '0':
		return string(v), nil
	}
	return "", errors.New("must be a string or a number")
}

func readCSV(in io.Reader, timed bool, do func(event) error) error {
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err == io.EOF {
		return errors.New("the file is empty: its first line names the columns")
	}
	if err != nil {
		return err
	}
	names := slices.Clone(header)
	names[0] = strings.TrimPrefix(names[0], fileio.ByteOrderMark)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("line 1: the column %s stands there twice", errtext.Quote(name))
		}
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		texts := make(map[string]string, len(row))
		for i, text := range row {
			texts[names[i]] = text
		}
		if err := takeEvent(texts, timed, do); err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// takeEvent makes an event of its members.
func takeEvent(texts map[string]string, timed bool, do func(event) error) (err error) {
	e := event{value: 1}
	for _, needed := range [...]struct {
		name string
		to   *string
	}{{memberRequest, &e.request}, {memberRow, &e.row}} {
		if texts[needed.name] == "" {
			return fmt.Errorf("%s is missing", needed.name)
		}
		*needed.to = quoted(texts[needed.name])
	}
	if id := texts[memberEvent]; id != "" {
		e.id = quoted(id)
	}
	if text := texts[memberTime]; text != "" {
		if e.at, err = parseTime(text); err != nil {
			return err
		}
	} else if timed {
		return fmt.Errorf("%s is missing", memberTime)
	}
	if text := texts[memberValue]; text != "" {
		if e.value, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(e.value) || math.IsInf(e.value, 0) {
			return fmt.Errorf("value is %s, must be a finite number", errtext.Quote(text))
		}
	}
	return do(e)
}

// quoted returns a text as a JSON string, which has no control characters.
func quoted(text string) string {
	q, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8, which was replaced
		return string(q)
	}
	return string(q)
}

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
