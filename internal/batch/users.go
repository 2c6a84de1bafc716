package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/registry"
)

// A Form says how users are written.
type Form string

// The forms.
const (
	Lines Form = "lines" // an id a line
	CSV   Form = "csv"   // a head with user_id, and columns that are the context of each user
	JSONL Form = "jsonl" // a request a line, as on stdin
)

// lineBytesMost bounds a line of users, and a row of a CSV.
const lineBytesMost = 1 << 20

// Users reads users one by one, each as a document. One goroutine.
type Users struct {
	in   *bufio.Reader
	form Form // empty: the first line decides
	reg  *registry.Registry
	line int // lines so far

	row   bytes.Reader // the text of a row of a CSV
	rows  *csv.Reader  // reads row
	names []string     // of the columns
	user  int          // the column of the user

	read  atomic.Int64 // bytes so far
	file  *os.File     // nil: they come from elsewhere
	asWas *source      // the file as it was at first
}

// NewUsers returns the users that in has. An empty form means that the first line decides: JSONL if it begins with a brace, otherwise Lines. The
// error is about the head of a CSV, or from in.
func NewUsers(in io.Reader, form Form, reg *registry.Registry) (*Users, error) {
	u := &Users{form: form, reg: reg, user: -1}
	u.file, _ = in.(*os.File)
	u.asWas = u.source()
	u.in = bufio.NewReaderSize(&counted{in, &u.read}, lineBytesMost)
	if form != CSV {
		return u, nil
	}
	u.rows = csv.NewReader(&u.row)
	u.rows.ReuseRecord = true
	line, refused, err := u.nextLine()
	if err = cmp.Or(err, refused); err == nil {
		u.names, err = u.cells(line)
	}
	if err != nil {
		return nil, fmt.Errorf("the head of the users: %w", err)
	}
	u.names = slices.Clone(u.names)
	for i, name := range u.names {
		if u.names[i] = strings.TrimSpace(name); u.names[i] == "user_id" {
			u.user = i
		}
	}
	if u.user < 0 {
		return nil, errors.New("the head of the users has no column user_id")
	}
	return u, nil
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Read returns how many bytes have been read so far. Any goroutine.
func (u *Users) Read() int64 { return u.read.Load() }

// Size returns how many bytes there are. Zero means unknown.
func (u *Users) Size() int64 {
	if now := u.source(); now != nil {
		return now.Size
	}
	return 0
}

// source describes the file of the users now; nil: there is none. Any goroutine.
func (u *Users) source() *source {
	if u == nil || u.file == nil {
		return nil
	}
	info, err := u.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return &source{info.Size(), info.ModTime()}
}

// changed returns an error if the file of the users has changed since it was opened. Any goroutine.
func (u *Users) changed() error {
	was, now := u.asWas, u.source()
	if was == nil || now != nil && was.Size == now.Size && was.ModTime.Equal(now.ModTime) {
		return nil
	}
	return fmt.Errorf("%s has changed while it was read: it had %v, and has %v. The same command goes on if the users so far are as they were", u.name(), was, now)
}

// Close closes the file of the users, if they come from one.
func (u *Users) Close() {
	if u.file != nil {
		_ = u.file.Close()
	}
}

func (u *Users) name() string {
	if u.file != nil {
		return u.file.Name()
	}
	return "users"
}

// Place says where the last user is: file and line.
func (u *Users) Place() string { return fmt.Sprintf("%s, line %d", u.name(), u.line) }

// shownMost is how many bytes of a broken line are kept.
const shownMost = 200

// nextLine returns the next line that is not blank, with its end. It is valid until the next call. Of a line that is too long it returns the beginning, and why it is refused.
func (u *Users) nextLine() (line []byte, refused, err error) {
	for blank := true; blank; blank = refused == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = u.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			refused = fmt.Errorf("longer than %d bytes", lineBytesMost)
			line = bytes.Clone(line[:shownMost])
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = u.in.ReadSlice('\n')
			}
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, nil, err
		}
		if u.line++; u.line == 1 {
			line = fileio.WithoutMark(line)
		}
	}
	return line, refused, nil
}

// Next returns the document of the next user, which is the caller's, or why that user is broken, with a document that is broken, too. The
// error is io.EOF at the end.
func (u *Users) Next() (doc []byte, refused, err error) {
	row, refused, err := u.nextLine()
	if err != nil {
		return nil, nil, err
	}
	line := bytes.TrimSpace(row)
	isRequest := bytes.HasPrefix(line, []byte("{"))
	if u.form == "" {
		if u.form = Lines; isRequest {
			u.form = JSONL
		}
	}
	switch {
	case refused != nil:
	case u.form == CSV:
		doc, refused = u.rowDocument(row)
	case u.form == Lines:
		doc = appendUser(nil, string(line))
	case isRequest:
		doc = bytes.Clone(line)
	default:
		refused = errors.New("a request begins with a brace")
	}
	if refused != nil { // The document fails again wherever it is read.
		refused = fmt.Errorf("%s: %w", u.Place(), refused)
		shown := strings.ToValidUTF8(string(line[:min(len(line), shownMost)]), "?")
		doc, _ = json.Marshal(map[string]string{"broken": shown, "error": refused.Error()}) // Strings have a JSON form.
	}
	return doc, refused, nil
}

// Document returns the document of a user in a line of text: the line itself if it begins with a brace, as a request on stdin, and otherwise
// one for the user with that id.
func Document(line string) []byte {
	if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") {
		return []byte(line)
	}
	return appendUser(nil, line)
}

// appendUser appends a document that has only the user.
func appendUser(dst []byte, id string) []byte {
	text, _ := json.Marshal(id) // Strings have a JSON form.
	return append(append(append(dst, `{"user_id": `...), text...), '}')
}

// cells returns the cells of a row of a CSV, which is one line. They are valid until the next call.
func (u *Users) cells(row []byte) ([]string, error) {
	u.row.Reset(row)
	cells, err := u.rows.Read()
	var at *csv.ParseError
	if errors.As(err, &at) {
		err = at.Err // Its line is that of the row.
	}
	if errors.Is(err, csv.ErrQuote) {
		err = fmt.Errorf("%w; a row is one line, and requests of JSON Lines may have texts of many", err)
	}
	return cells, err
}

// rowDocument returns the document of a row. An empty cell is a value that the user does not have.
func (u *Users) rowDocument(row []byte) ([]byte, error) {
	cells, err := u.cells(row)
	if err != nil {
		return nil, err
	}
	doc := appendUser(nil, cells[u.user])
	context := map[string]any{}
	for i, cell := range cells {
		if i != u.user && cell != "" {
			context[u.names[i]] = u.value(u.names[i], cell)
		}
	}
	if len(context) == 0 {
		return doc, nil
	}
	text, err := json.Marshal(context)
	if err != nil {
		return nil, err
	}
	return append(append(append(doc[:len(doc)-1], `, "context": `...), text...), '}'), nil
}

// value returns a cell in the type of the parameter of that name. A cell without the form of that type stays a text.
func (u *Users) value(name, cell string) any {
	p, ok := u.reg.ParamByName(name)
	if !ok {
		return cell
	}
	switch p.Type {
	case registry.Int, registry.Float:
		if _, err := strconv.ParseFloat(cell, 64); err == nil && json.Valid([]byte(cell)) {
			return json.Number(cell)
		}
	case registry.Bool:
		if cell == "true" || cell == "false" {
			return cell == "true"
		}
	case registry.Vector:
		if json.Valid([]byte(cell)) {
			return json.RawMessage(cell)
		}
	}
	return cell
}
