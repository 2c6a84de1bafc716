package scheduler

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An anchor finds a piece of Go in a package by its structure. Keywords, operators, literals and the
// language's own names have to be the same; every other name of the piece stands for any name, for the same one
// wherever it occurs. Comments, line breaks, files and the order of functions do not matter.
//
// Several places may have the structure. The names then decide: each that is the same as in the piece is a vote, and so are
// the name and the receiver of the function around it. The place with the most votes is meant if it
// is the only such and has more than half of all votes. So an anchor holds while some of its names change.
type anchor struct {
	function string // Name, or Type.Name of a method
	piece    string
}

// A goToken is a token of Go with its place in the text.
type goToken struct {
	kind     token.Token
	text     string
	pos, end int
	dotted   bool // follows a dot: a field or a method, which may be named like a variable
}

// A goName is a name of the piece.
type goName struct {
	text   string
	dotted bool
}

// A goPlace is where an anchor holds.
type goPlace struct {
	file     string
	source   []byte
	pos, end int
	function string
	names    map[goName]string // from the names of the piece to those of the source
	votes    int
}

func tokensOf(source []byte) (tokens []goToken) {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	dotted := false
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return tokens
		}
		if kind == token.SEMICOLON {
			text = ";" // The scanner tells how it was written.
		}
		if text == "" {
			text = kind.String()
		}
		at := file.Offset(pos)
		tokens = append(tokens, goToken{kind, text, at, at + len(text), dotted})
		dotted = kind == token.PERIOD
	}
}

// name returns the name that the token is, unless it is one of the language.
func (t goToken) name() (goName, bool) {
	ok := t.kind == token.IDENT && t.text != "_" && types.Universe.Lookup(t.text) == nil
	return goName{t.text, t.dotted}, ok
}

// pieceTokens returns the tokens of the piece, without the semicolon that the end of a text implies.
func (a anchor) pieceTokens() []goToken {
	tokens := tokensOf([]byte(a.piece))
	if n := len(tokens); tokens[n-1].kind == token.SEMICOLON {
		tokens = tokens[:n-1]
	}
	return tokens
}

// bind compares the piece with the source token by token. It returns what each name of the piece stands for.
func bind(piece, source []goToken) (names map[goName]string, ok bool) {
	if len(source) < len(piece) {
		return nil, false
	}
	names = map[goName]string{}
	for i, p := range piece {
		s := source[i]
		name, isName := p.name()
		if !isName {
			if p.kind != s.kind || p.text != s.text {
				return nil, false
			}
			continue
		}
		if _, ok := s.name(); !ok || p.dotted != s.dotted {
			return nil, false
		}
		if bound, seen := names[name]; seen && bound != s.text {
			return nil, false
		}
		names[name] = s.text
	}
	return names, true
}

// functionName returns Name, or Type.Name of a method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// functionVotes compares two names of functions: one vote for the receiver's type, one for the rest.
func functionVotes(a, b string) (votes int) {
	typeA, nameA, isMethodA := strings.Cut(a, ".")
	typeB, nameB, isMethodB := strings.Cut(b, ".")
	if isMethodA != isMethodB {
		return 0
	}
	if typeA == typeB {
		votes++
	}
	if nameA == nameB {
		votes++
	}
	return votes
}

// placesIn returns every place of a file with the structure of the piece.
func (a anchor) placesIn(file string, source []byte) (places []goPlace, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	piece := a.pieceTokens()
	tokens := tokensOf(source)
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		from, to := files.Position(f.Pos()).Offset, files.Position(f.End()).Offset
		for i, t := range tokens {
			if t.pos < from || t.pos >= to {
				continue
			}
			names, ok := bind(piece, tokens[i:])
			if !ok {
				continue
			}
			place := goPlace{
				file: file, source: source, pos: t.pos, end: tokens[i+len(piece)-1].end,
				function: functionName(f), names: names, votes: functionVotes(a.function, functionName(f)),
			}
			for name, bound := range names {
				if name.text == bound {
					place.votes++
				}
			}
			places = append(places, place)
		}
	}
	return places, nil
}

// elect returns the place that the votes mean.
func (a anchor) elect(places []goPlace) (*goPlace, error) {
	var best *goPlace
	tied := false
	for i := range places {
		p := &places[i]
		switch {
		case best == nil || p.votes > best.votes:
			best, tied = p, false
		case p.votes == best.votes:
			tied = true
		}
	}
	switch {
	case best == nil:
		return nil, fmt.Errorf("nothing has the structure of %q", a.piece)
	case tied:
		return nil, fmt.Errorf("several places are as much like %q in %s as %s", a.piece, a.function, best)
	case 2*best.votes <= len(best.names)+2:
		return nil, fmt.Errorf("too few names of %q in %s are those of %s", a.piece, a.function, best)
	}
	return best, nil
}

// find returns the place of the anchor in the package of a folder.
func (a anchor) find(dir string) (*goPlace, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []goPlace
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		places, err := a.placesIn(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, places...)
	}
	return a.elect(all)
}

// String implements fmt.Stringer.
func (p *goPlace) String() string {
	return fmt.Sprintf("%s:%d (%s)", p.file, 1+bytes.Count(p.source[:p.pos], []byte("\n")), p.function)
}

// translate gives the names of a text written like the piece as they are at the place.
func (p *goPlace) translate(text string) string {
	var b strings.Builder
	rest := 0
	for _, t := range tokensOf([]byte(text)) {
		if name, ok := t.name(); ok && p.names[name] != "" {
			b.WriteString(text[rest:t.pos] + p.names[name])
			rest = t.end
		}
	}
	return b.String() + text[rest:]
}

// replace returns the source with a text, written like the piece, in the place of the piece.
func (p *goPlace) replace(text string) []byte {
	return []byte(string(p.source[:p.pos]) + p.translate(text) + string(p.source[p.end:]))
}

func TestAnchor(t *testing.T) {
	const source = `package p

func (s *Stack) Pop() (top int) {
	if s.n == 0 { // empty
		return 0
	}
	s.n--
	s.pops.Add(1)
	return s.items[s.n]
}

func (s *Stack) Drop() {
	if s.n == 0 {
		return
	}
	s.n--
}
`
	pop := anchor{"Stack.Pop", "s.n--\ns.pops.Add(1)"}
	drop := anchor{"Stack.Drop", "if s.n == 0 {"}
	for _, c := range []struct {
		name     string
		anchor   anchor
		renames  []string // pairs of old and new
		to, want string   // replacement, and the text that it brings; or
		fails    string   // the error
	}{
		{"as it is", pop, nil, "s.n++", "\ts.n++\n\treturn s.items", ""},
		{"names of the place are those of the replacement", pop, []string{"s.n", "s.size"}, "s.n++", "\ts.size++\n\treturn s.items", ""},
		{"the function decides between equals", drop, nil, "if false {", "Drop() {\n\tif false {", ""},
		{"the function and the field are renamed", pop, []string{"Pop()", "Take()", "pops", "taken"}, "s.pops.Add(2)", "s.taken.Add(2)", ""},
		{"the type is renamed", drop, []string{"Stack", "Pile"}, "if false {", "Drop() {\n\tif false {", ""},
		{"comments and lines do not matter", anchor{"Stack.Pop", "if s.n == 0 { return 0; }"}, nil, "", "(top int) {\n\t\n", ""},
		{"a function renamed that alone told equals apart", drop, []string{"Drop()", "Discard()", "Pop()", "Take()"}, "", "", "several places"},
		{"the structure has changed", pop, []string{"s.n--", "s.n -= 1"}, "", "", "nothing has the structure"},
		{"a literal has changed", drop, []string{"== 0", "== 1"}, "", "", "nothing has the structure"},
		{"too much is renamed", pop, []string{"Pop()", "Take()", "Stack", "Pile", "s.", "p.", "pops", "taken"}, "", "", "too few names"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer(c.renames...).Replace(source)
			places, err := c.anchor.placesIn("p.go", []byte(text))
			require.NoError(t, err)
			place, err := c.anchor.elect(places)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			assert.Contains(t, string(place.replace(c.to)), c.want)
		})
	}
}
