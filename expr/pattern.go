package expr

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/rankd/rankd/registry"
)

// Patterns from requests are kept compiled, since the same few come again and
// again. Both bounds are generous for that, and small as memory.
const (
	patternsKept    = 64      // by one leaf; beyond, one of them makes room
	patternKeptSize = 4 << 10 // bytes; longer ones are compiled each time
)

// A pattern is the regular expression of a leaf: a literal, compiled when the
// plan is, or a parameter. Any goroutine.
type pattern struct {
	literal    *matcher // nil: it is a parameter
	param      registry.ParamID
	ignoreCase bool

	mu   sync.RWMutex
	kept map[string]*matcher // guarded by mu; at most patternsKept
}

// A matcher is a compiled pattern, or why there is none. Immutable once built.
type matcher struct {
	re  *regexp.Regexp
	err error
}

func newLiteralPattern(text string, ignoreCase bool) *pattern {
	return &pattern{literal: compilePattern(text, ignoreCase)}
}

func newParamPattern(param registry.ParamID, ignoreCase bool) *pattern {
	return &pattern{param: param, ignoreCase: ignoreCase}
}

func (m *matcher) match(s string) bool { return m.re.MatchString(s) }

// matcher returns the pattern compiled, for one request. The error wraps
// ErrBadPattern or is ErrNullPattern.
func (p *pattern) matcher(params *Params) (*matcher, error) {
	m := p.literal
	if m == nil {
		text, ok := params.String(p.param)
		if !ok {
			return nil, ErrNullPattern
		}
		m = p.compiled(text)
	}
	return m, m.err
}

// compiled compiles a pattern of a request, or finds it compiled.
func (p *pattern) compiled(text string) *matcher {
	if len(text) > patternKeptSize {
		return compilePattern(text, p.ignoreCase)
	}
	p.mu.RLock()
	m := p.kept[text]
	p.mu.RUnlock()
	if m != nil {
		return m
	}
	m = compilePattern(text, p.ignoreCase) // outside of the lock: others need not wait
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = make(map[string]*matcher)
	}
	if len(p.kept) >= patternsKept {
		for victim := range p.kept { // any: Go starts at a random one
			delete(p.kept, victim)
			break
		}
	}
	p.kept[strings.Clone(text)] = m // the request's memory may be much larger
	return m
}

// compilePattern compiles an RE2 pattern for partial matches.
func compilePattern(text string, ignoreCase bool) *matcher {
	if name, ok := foreignClass(text); ok {
		return &matcher{err: fmt.Errorf("%w: no class %s in RE2", ErrBadPattern, name)}
	}
	source := text
	if ignoreCase {
		source = "(?i)" + text
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return &matcher{err: fmt.Errorf("%w: %w", ErrBadPattern, err)}
	}
	return &matcher{re: re}
}

// foreignClass finds a Unicode class that Go knows and RE2 does not. RE2 knows
// general categories by their short names, scripts, and Any, spelled exactly
// so; Go also knows long names, a few more categories, and is lax about case,
// spaces, hyphens and underscores. All else in which the two differ is where
// RE2 accepts more (\C) or looks at invalid UTF-8: there Go's rules stand.
func foreignClass(pattern string) (name string, found bool) {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		i++
		switch pattern[i] {
		case 'Q': // literal text up to \E
			end := strings.Index(pattern[i:], `\E`)
			if end < 0 {
				return "", false
			}
			i += end + 1
		case 'p', 'P':
			rest := pattern[i+1:]
			name := rest
			if strings.HasPrefix(rest, "{") {
				end := strings.IndexByte(rest, '}')
				if end < 0 {
					return "", false // malformed for both
				}
				name = strings.TrimPrefix(rest[1:end], "^")
			} else {
				_, size := utf8.DecodeRuneInString(rest)
				name = rest[:size]
			}
			if !isRE2Class(name) {
				return name, true
			}
		}
	}
	return "", false
}

func isRE2Class(name string) bool {
	switch name {
	case "Any":
		return true
	case "Cn", "LC": // categories that only Go has
		return false
	}
	return unicode.Categories[name] != nil || unicode.Scripts[name] != nil
}
