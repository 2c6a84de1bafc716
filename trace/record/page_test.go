package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/reference/record-format.md anew")

// structs are the types of bodies and of their parts.
var structs = []reflect.Type{
	reflect.TypeFor[Header](), reflect.TypeFor[Generation](), reflect.TypeFor[File](), reflect.TypeFor[Resident](), reflect.TypeFor[Request](),
	reflect.TypeFor[Answer](), reflect.TypeFor[Run](), reflect.TypeFor[Node](), reflect.TypeFor[Value](), reflect.TypeFor[Failure](),
	reflect.TypeFor[Rows](), reflect.TypeFor[Column](),
}

// TestPage: the page has each field in its order, and the bytes of a file, which a reader that knows only the page finds in it.
func TestPage(t *testing.T) {
	const path = "../../docs/reference/record-format.md"
	const mark = "`go test ./trace/record -run TestPage -update` writes what follows. -->\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	head, _, ok := strings.Cut(string(page), mark)
	require.True(t, ok)
	want := head + mark + "\n## Fields\n" + fieldTables(t) + "\n## A file, byte by byte\n\n" + exampleTable(t)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		page = []byte(want)
	}
	assert.Equal(t, want, string(page), "go test ./trace/record -run TestPage -update")
}

// fieldTables has a table for each struct, with the comments of the source.
func fieldTables(t *testing.T) string {
	source, err := parser.ParseFile(token.NewFileSet(), "request.go", nil, parser.ParseComments)
	require.NoError(t, err)
	comments := map[string]string{}
	constants := map[string][]string{} // of a type
	text := func(groups ...*ast.CommentGroup) (all string) {
		for _, g := range groups {
			all += " " + g.Text()
		}
		return strings.Join(strings.Fields(all), " ")
	}
	for _, decl := range source.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		of := ""
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				comments[spec.Name.Name] = strings.TrimSuffix(text(general.Doc), " One goroutine.")
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							comments[spec.Name.Name+"."+name.Name] = text(field.Doc, field.Comment)
						}
					}
				}
			case *ast.ValueSpec:
				if spec.Type != nil {
					of = fmt.Sprint(spec.Type)
				}
				constants[of] = append(constants[of], fmt.Sprintf("`%s` | %s |", spec.Names[0].Name, text(spec.Comment)))
			}
		}
	}
	var out strings.Builder
	for _, of := range []string{"End", "Kind"} {
		first := map[string]int{"End": int(NotRun), "Kind": int(Call)}[of]
		fmt.Fprintf(&out, "\n`%s`: %s\n\n| number | name | |\n|---|---|---|\n", of, comments[of])
		for i, row := range constants[of] {
			fmt.Fprintf(&out, "| %d | %s\n", first+i, row)
		}
	}
	for _, s := range structs {
		fmt.Fprintf(&out, "\n`%s`: %s\n\n| field | type | |\n|---|---|---|\n", s.Name(), comments[s.Name()])
		for i := range s.NumField() {
			f := s.Field(i)
			for of := f.Type; ; of = of.Elem() {
				if of.Kind() == reflect.Struct && of != timeType {
					require.Contains(t, structs, of, "the page needs it")
				}
				if k := of.Kind(); k != reflect.Slice && k != reflect.Pointer {
					break
				}
			}
			kind := strings.NewReplacer("record.", "", "uint8", "byte").Replace(f.Type.String())
			if k := f.Type.Kind(); k == reflect.Uint8 || k == reflect.Int64 && f.Type.Name() != "int64" {
				kind += " (" + k.String() + ")"
			}
			fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", f.Name, kind, comments[s.Name()+"."+f.Name])
		}
	}
	return out.String()
}

// table is the table of a file's bytes.
type table struct {
	t    *testing.T
	file []byte
	at   int
	out  strings.Builder
}

// take adds a row of the next n bytes.
func (x *table) take(n int, says string, args ...any) []byte {
	p := x.file[x.at : x.at+n]
	hex := fmt.Sprintf("% x", p)
	if n > 24 {
		hex = fmt.Sprintf("% x … % x", p[:12], p[n-8:])
	}
	fmt.Fprintf(&x.out, "| %d | %d | `%s` | %s |\n", x.at, n, hex, fmt.Sprintf(says, args...))
	x.at += n
	return p
}

// varint adds a row of a varint.
func (x *table) varint(says string) uint64 {
	v, n := binary.Uvarint(x.file[x.at:])
	require.Positive(x.t, n)
	x.take(n, says, v)
	return v
}

// body adds the rows of a body.
func (x *table) body(v any) {
	value := reflect.ValueOf(v).Elem()
	end := int(x.varint(value.Type().Name() + ": %d bytes of fields"))
	end += x.at
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if x.at == end {
			break
		}
		// What the field takes is known to the encoder alone, but for its blobs.
		var e encoder
		e.value(value.Field(i))
		require.Equal(x.t, e.body, x.file[x.at:x.at+len(e.body)], field.Name)
		x.take(len(e.body), "`%s`", field.Name)
	}
	require.Equal(x.t, end, x.at)
}

// exampleTable reads a file by the rules of the page.
func exampleTable(t *testing.T) string {
	h := Header{Commit: "v1", Go: "go1.26", OS: "linux", Arch: "amd64", Values: 1, Sample: 0.5, Salt: "record", Written: time.Unix(1_800_000_000, 0).UTC()}
	first := sha256.Sum256(nil)
	second := sha256.Sum256(first[:])
	reply := append(append([]byte("$64\r\n"), first[:]...), second[:]...)
	q := Request{ID: [16]byte(second[16:]), RequestID: "visit-81", UserID: 7, Arrived: time.Unix(1_800_000_000, 5).UTC(), Plan: "home", Params: []byte("{}"), Trace: reply}
	x := &table{t: t, file: write(t, h, &q)}
	x.out.WriteString("A request of user 7 with a blob of 69 bytes. Writers use zstd from 512 bytes of entries on.\n\n| from byte | bytes | | |\n|---|---|---|---|\n")
	x.take(15, "version 1")
	var file []byte
	for kind := byte(0); kind != 'Z'; {
		offset := x.at
		kind = x.take(1, "frame")[0]
		require.Zero(t, x.take(1, "form")[0])
		stored := binary.LittleEndian.Uint32(x.take(4, "bytes of the payload"))
		require.Equal(t, stored, binary.LittleEndian.Uint32(x.take(4, "bytes without zstd and age")))
		crc := crc32.Checksum(x.file[offset:x.at], crc32.MakeTable(crc32.Castagnoli))
		require.Equal(t, crc, binary.LittleEndian.Uint32(x.take(4, "CRC-32C of the ten bytes before")))
		sum := sha256.New()
		sum.Write(append(append(append(bytes.Clone(file), make([]byte, 16-len(file))...), binary.LittleEndian.AppendUint64(nil, uint64(offset))...), x.file[offset:x.at]...))
		sum.Write(x.file[offset+30 : offset+30+int(stored)])
		require.Equal(t, sum.Sum(nil)[:16], x.take(16, "half of the SHA-256"))
		if file == nil {
			file = x.file[x.at-16 : x.at]
		}
		end := x.at + int(stored)
		switch kind {
		case 'H':
			x.body(&h)
		case 'E':
			for x.at < end {
				entry := x.take(1, "entry")[0]
				length := int(x.varint("%d bytes of it"))
				if entry == 'b' {
					require.Equal(t, reply, x.take(length, "blob 0"))
					continue
				}
				require.Equal(t, byte('r'), entry)
				require.EqualValues(t, 1, x.varint("%d blob, which the body names"))
				require.Zero(t, x.varint("number %d"))
				x.body(&q)
			}
		case 'Z':
			require.EqualValues(t, 1, x.varint("%d request"))
			require.EqualValues(t, 1, x.varint("%d blob"))
		}
		require.Equal(t, end, x.at)
	}
	require.Len(t, x.file, x.at)
	return x.out.String()
}
