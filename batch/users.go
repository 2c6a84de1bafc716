package batch

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	form Form
	reg  *registry.Registry

	rows  *csv.Reader
	row   rowText      // what rows reads
	names []string     // of the columns of a CSV
	user  int          // the column of the user
	read  atomic.Int64 // bytes so far
	file  *os.File     // nil: they come from elsewhere
	asWas *source      // the file as it was at first

	back []byte // lines to be read again, before those of in
	long []byte // the beginning of a line that is too long, to be read again behind those
	line int    // lines so far
	at   int    // the line where the last user began
}

// NewUsers returns the users that in has. An empty form means that the first line decides: JSONL if it begins with a brace, otherwise Lines. The
// error is about the head of a CSV, or from in.
func NewUsers(in io.Reader, form Form, reg *registry.Registry) (*Users, error) {
	u := &Users{form: form, reg: reg}
	u.file, _ = in.(*os.File)
	u.asWas = u.source()
	u.in = bufio.NewReaderSize(&counted{in, &u.read}, lineBytesMost)
	if first, _ := u.in.Peek(1); string(first) == fileio.ByteOrderMark[:1] { // More bytes may come late.
		if mark, _ := u.in.Peek(len(fileio.ByteOrderMark)); string(mark) == fileio.ByteOrderMark {
			_, _ = u.in.Discard(len(mark)) // It is in the buffer.
		}
	}
	if form == "" {
		u.form = Lines
		if first, _ := u.in.Peek(1); len(first) == 1 && first[0] == '{' {
			u.form = JSONL
		}
	}
	if u.form != CSV {
		return u, nil
	}
	u.rows = csv.NewReader(&u.row)
	u.rows.ReuseRecord = true
	head, broken, err := u.nextRow()
	if err = errors.Join(err, broken); err != nil {
		return nil, fmt.Errorf("the head of the users: %w", err)
	}
	u.user = -1
	for i, name := range head {
		name = strings.TrimSpace(name)
		if u.names = append(u.names, name); name == "user_id" {
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
func (u *Users) Place() string { return fmt.Sprintf("%s, line %d", u.name(), u.at) }

// errLong is the error of a line that is too long.
var errLong = fmt.Errorf("longer than %d bytes", lineBytesMost)

// nextLine returns the next line, with its end. It is valid until the next call. Of a line that is too long it returns the beginning, and errLong.
func (u *Users) nextLine() (line []byte, err error) {
	if len(u.back) > 0 {
		u.line++
		n := bytes.IndexByte(u.back, '\n') + 1
		if n == 0 {
			n = len(u.back)
		}
		line, u.back = u.back[:n], u.back[n:]
		return line, nil
	}
	if line = u.long; line != nil {
		u.line, u.long = u.line+1, nil
		return line, errLong
	}
	line, err = u.in.ReadSlice('\n')
	if err == nil || len(line) > 0 {
		u.line++
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line[:shownMost])
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = u.in.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = errLong
		}
	} else if len(line) > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// shownMost is how many bytes of a broken line are kept.
const shownMost = 200

// broken returns the document and the error of a user that cannot be read. The document fails again wherever it is read.
func (u *Users) broken(line []byte, why error) (doc []byte, refused error) {
	refused = fmt.Errorf("%s: %w", u.Place(), why)
	line = bytes.TrimSpace(line)
	doc, _ = json.Marshal(map[string]string{"broken": strings.ToValidUTF8(string(line[:min(len(line), shownMost)]), "?"), "error": refused.Error()}) // Strings have a JSON form.
	return doc, refused
}

// Next returns the document of the next user, which is the caller's, or why that user is broken, with a document that is broken, too. The
// error is io.EOF at the end.
func (u *Users) Next() (doc []byte, refused, err error) {
	for {
		if u.rows != nil {
			row, refused, err := u.nextRow()
			switch {
			case err != nil:
				return nil, nil, err
			case refused != nil:
				doc, refused = u.broken(u.row.text, refused)
			default:
				doc, err = u.rowDocument(row)
			}
			return doc, refused, err
		}
		line, err := u.nextLine()
		u.at = u.line
		if err != nil && !errors.Is(err, errLong) {
			return nil, nil, err
		}
		line = bytes.TrimSpace(line)
		switch {
		case err != nil:
			doc, refused = u.broken(line, err)
		case len(line) == 0:
			continue
		case u.form == JSONL && line[0] != '{':
			doc, refused = u.broken(line, errors.New("a request begins with a brace"))
		case u.form == JSONL:
			doc = bytes.Clone(line)
		default:
			doc = appendUser(nil, string(line))
		}
		return doc, refused, nil
	}
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

// A rowText is the text of one row. To the reader of rows it is all that there is. One goroutine.
type rowText struct{ text, rest []byte }

// Read implements io.Reader.
func (t *rowText) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// nextRow returns the next row of a CSV, which is valid until the next call, or why it is broken. A row goes on over lines until its quotes are even. If it is broken then, only
// its first line is, and the others are rows of their own: one quote too many takes no further user with it.
func (u *Users) nextRow() (row []string, broken, err error) {
	for blank := true; blank; blank = len(bytes.TrimSpace(u.row.text)) == 0 {
		line, err := u.nextLine()
		u.at, u.row.text = u.line, append(u.row.text[:0], line...)
		switch {
		case errors.Is(err, errLong):
			return nil, err, nil
		case err != nil:
			return nil, nil, err
		}
	}
	first := len(u.row.text)
	for bytes.Count(u.row.text, []byte{'"'})%2 == 1 {
		line, err := u.nextLine()
		if errors.Is(err, errLong) {
			u.long = line
		} else if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if err != nil {
			break
		}
		if u.row.text = append(u.row.text, line...); len(u.row.text) > lineBytesMost {
			break
		}
	}
	u.row.rest = u.row.text
	if row, err = u.rows.Read(); err == nil {
		return row, nil, nil
	}
	for _, left := u.rows.Read(); !errors.Is(left, io.EOF); _, left = u.rows.Read() { // what the reader has of this row
	}
	var at *csv.ParseError
	if errors.As(err, &at) {
		err = at.Err // Its line is that of the row.
	}
	u.back = append(bytes.Clone(u.row.text[first:]), u.back...)
	u.line = u.at
	u.row.text = u.row.text[:first]
	return nil, err, nil
}

// rowDocument returns the document of a row. An empty cell is a value that the user does not have.
func (u *Users) rowDocument(row []string) ([]byte, error) {
	doc := appendUser(nil, row[u.user])
	context := map[string]any{}
	for i, cell := range row {
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
