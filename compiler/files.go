package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rankd/rankd/internal/fileio"
)

// Bounds of one source file.
const (
	sourceMaxBytes = 256 << 10
	nestingMax     = 500 // of brackets; the parsers recurse without a bound of their own
)

// sourceFile is a file of the folder that has been read.
type sourceFile struct {
	name  string // in the folder, with slashes
	text  string
	lines []string
}

// lineEnd matches what ends a line in JavaScript.
var lineEnd = regexp.MustCompile("\r\n|[\n\r\u2028\u2029]")

// line returns a line of the file, from 1, without its end.
func (f *sourceFile) line(number int) string {
	if f.lines == nil {
		f.lines = lineEnd.Split(f.text, -1)
	}
	if number < 1 || number > len(f.lines) {
		return ""
	}
	return f.lines[number-1]
}

// folder reads the files of one plan. Any goroutine: esbuild loads files at the same time.
type folder struct {
	root  *os.Root // nil: the folder is not on disk
	entry string
	text  []byte // of the entry, if it should not be read

	mu    sync.Mutex
	files map[string]*sourceFile // by name
}

// openFolder opens the folder of a source. The root follows no link that leaves it.
func openFolder(source Source) (*folder, error) {
	f := &folder{entry: path.Clean(filepath.ToSlash(source.File)), text: source.Text, files: make(map[string]*sourceFile)}
	root, err := os.OpenRoot(source.Folder)
	if err != nil && source.Text == nil {
		return nil, err
	}
	f.root = root
	return f, nil
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}

// line returns a line of a file that has been read.
func (f *folder) line(name string, number int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file := f.files[name]; file != nil {
		return file.line(number)
	}
	return ""
}

// loaded returns the files that have been read, the plan's own first.
func (f *folder) loaded() []*sourceFile {
	_, names := f.digest()
	files := make([]*sourceFile, len(names))
	for i, name := range names {
		files[i] = f.files[name]
	}
	return files
}

// A fileFault says why a file cannot be part of a plan.
type fileFault struct {
	code, message, hint string
	line, column        int // of the fault in the file itself; 0 means none
}

// read reads a file once.
func (f *folder) read(name string) (*sourceFile, *fileFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file, ok := f.files[name]; ok {
		return file, nil
	}
	data, fault := f.load(name)
	if fault != nil {
		return nil, fault
	}
	file := &sourceFile{name: name, text: string(fileio.WithoutMark(data))}
	if fault := file.check(); fault != nil {
		f.files[name] = file // for the excerpt
		return nil, fault
	}
	f.files[name] = file
	return file, nil
}

func (f *folder) load(name string) ([]byte, *fileFault) {
	if name == f.entry && f.text != nil {
		if len(f.text) > sourceMaxBytes {
			return nil, tooLarge(int64(len(f.text)))
		}
		return f.text, nil
	}
	unreadable := func(err error) *fileFault {
		var inPath *fs.PathError
		if errors.As(err, &inPath) {
			err = inPath.Err
		}
		return &fileFault{code: "unreadable", message: fmt.Sprintf("cannot read %s: %v", name, err), hint: "imports name files of the plan's folder, as in \"./helpers\""}
	}
	if f.root == nil {
		return nil, unreadable(fs.ErrNotExist)
	}
	info, err := f.root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, unreadable(errors.New("not a regular file"))
	case info.Size() > sourceMaxBytes:
		return nil, tooLarge(info.Size())
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, sourceMaxBytes+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(data) > sourceMaxBytes:
		return nil, tooLarge(int64(len(data)))
	}
	return data, nil
}

func tooLarge(size int64) *fileFault {
	return &fileFault{
		code:    "too-large",
		message: fmt.Sprintf("the source has %d bytes, more than %d", size, sourceMaxBytes),
		hint:    "split it into files that the plan imports",
	}
}

// check refuses a text that a parser should not see.
func (f *sourceFile) check() *fileFault {
	at := func(offset int) (line, column int) {
		before := lineEnd.Split(f.text[:offset], -1)
		return len(before), 1 + utf16Len(before[len(before)-1])
	}
	if !utf8.ValidString(f.text) {
		offset := 0
		for {
			r, size := utf8.DecodeRuneInString(f.text[offset:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			offset += size
		}
		line, column := at(offset)
		return &fileFault{code: "encoding", message: "the source is not UTF-8", hint: "save the file as UTF-8", line: line, column: column}
	}
	if offset := strings.Index(f.text, hostName); offset >= 0 {
		line, column := at(offset)
		return &fileFault{code: "reserved", message: "the name " + hostName + " is reserved", hint: "choose another name", line: line, column: column}
	}
	if offset := tooDeep(f.text); offset >= 0 {
		line, column := at(offset)
		return &fileFault{
			code: "too-deep", message: fmt.Sprintf("brackets nest deeper than %d levels", nestingMax),
			hint: "give parts of the expression names, with const", line: line, column: column,
		}
	}
	return nil
}

// tooDeep returns where brackets of the text nest too deep, or -1. It skips comments and quoted strings. It need not
// be exact: a text that deceives it can at worst kill the child process.
func tooDeep(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '(', '[', '{':
			if depth++; depth > nestingMax {
				return i
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		case '"', '\'':
			for i++; i < len(text) && text[i] != c && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			switch rest := text[i:]; {
			case strings.HasPrefix(rest, "//"):
				if end := strings.IndexByte(rest, '\n'); end >= 0 {
					i += end
				} else {
					i = len(text)
				}
			case strings.HasPrefix(rest, "/*"):
				if end := strings.Index(rest[2:], "*/"); end >= 0 {
					i += end + 3
				}
			}
		}
	}
	return -1
}

// digest returns the hex SHA-256 of the files' names and texts, and their names, the plan's own
// first.
func (f *folder) digest() (string, []string) {
	names := make([]string, 0, len(f.files))
	for name := range f.files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		switch f.entry {
		case a:
			return -1
		case b:
			return 1
		}
		return strings.Compare(a, b)
	})
	sum := sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%d %s %d %s", len(name), name, len(f.files[name].text), f.files[name].text)
	}
	return hex.EncodeToString(sum.Sum(nil)), names
}
