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

// lineBytesMost bounds a line of users.
const lineBytesMost = 1 << 20

// Users reads users one by one, each as a document. One goroutine.
type Users struct {
	in   *bufio.Reader
	form Form
	reg  *registry.Registry

	rows  *csv.Reader
	names []string     // of the columns of a CSV
	user  int          // the column of the user
	read  atomic.Int64 // bytes so far
	file  *os.File     // nil: they come from elsewhere
}

// NewUsers returns the users that in has. An empty form means that the first line decides: JSONL if it begins with a brace, otherwise Lines. The
// error is about the head of a CSV, or from in.
func NewUsers(in io.Reader, form Form, reg *registry.Registry) (*Users, error) {
	u := &Users{form: form, reg: reg}
	u.file, _ = in.(*os.File)
	u.in = bufio.NewReaderSize(&counted{in, &u.read}, lineBytesMost)
	if form == "" {
		u.form = Lines
		if first, _ := u.in.Peek(1); len(first) == 1 && first[0] == '{' {
			u.form = JSONL
		}
	}
	if u.form != CSV {
		return u, nil
	}
	u.rows = csv.NewReader(u.in)
	u.rows.ReuseRecord = true
	head, err := u.rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the head of the users: %w", err)
	}
	u.user = -1
	for i, name := range head {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
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
	if u.file == nil {
		return 0
	}
	if info, err := u.file.Stat(); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// Close closes the file of the users, if they come from one.
func (u *Users) Close() {
	if u.file != nil {
		_ = u.file.Close()
	}
}

// Next returns the document of the next user, which is the caller's. The error is io.EOF at the end.
func (u *Users) Next() ([]byte, error) {
	if u.rows != nil {
		return u.nextRow()
	}
	for {
		line, err := u.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("a line of the users is longer than %d bytes", lineBytesMost)
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 && err != nil:
			return nil, err
		case len(line) == 0:
			continue
		case u.form == JSONL:
			return bytes.Clone(line), nil
		}
		return appendUser(nil, string(line)), nil
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

// nextRow returns the document of the next row of a CSV. An empty cell is a value that the user does not have.
func (u *Users) nextRow() ([]byte, error) {
	row, err := u.rows.Read()
	if err != nil {
		return nil, err
	}
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
