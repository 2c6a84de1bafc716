package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

func TestPatternsAreThoseOfRE2(t *testing.T) {
	for _, c := range []struct {
		pattern    string
		ignoreCase bool
		matches    []string // nil: the pattern is refused
		others     []string
	}{
		{`b.d`, false, []string{"abcde", "b\xc3\xa4d"}, []string{"b\nd", "bd"}},
		{`^b$`, false, []string{"b"}, []string{"a\nb\nc", "b\n"}},
		{`(?m)^b$`, false, []string{"a\nb\nc", "b\n"}, []string{"ab"}},
		{`(?s)b.d`, false, []string{"b\nd"}, nil},
		{`straße`, true, []string{"STRAßE", "Straße"}, []string{"strasse"}},
		{`k`, true, []string{"K", "\u212a"}, nil},
		{`a(?-i)b`, true, []string{"Ab"}, []string{"AB"}},
		{`\bus\b`, false, []string{"the us of"}, []string{"bus"}},
		{`\d{2,3}`, false, []string{"a12"}, []string{"a1", "٣٤"}},
		{`a{1000}`, false, []string{strings.Repeat("a", 1000)}, []string{"a"}},
		{`\pL\p{Lu}\p{Greek}`, false, []string{"aBα"}, []string{"abα"}},
		{`\p{^Greek}\PL`, false, []string{"a1"}, []string{"α1"}},
		{`^\p{Any}$`, false, []string{"a"}, []string{"ab"}},
		{`[\p{Nd}x]`, false, []string{"x", "7"}, []string{"y"}},
		{`\Q\p{Letter}\E$`, false, []string{`\p{Letter}`}, []string{"a"}},
		{`\Qa.b`, false, []string{`a.b`}, []string{"axb"}},
		{`\\p{Letter}`, false, []string{`\p{Letter}`}, []string{"p"}},
		{`(?P<n>a)`, false, []string{"a"}, nil},
		{`(?P<n>a)(?P<m>b)(c)(d)`, false, []string{"abcd"}, nil},

		{`(?=a)`, false, nil, nil},
		{`(?<!a)b`, false, nil, nil},
		{`(a)\1`, false, nil, nil},
		{`a++`, false, nil, nil},
		{`(?>a)`, false, nil, nil},
		{`a{1001}`, false, nil, nil},
		{`(a{100}){100}`, false, nil, nil},
		{`(a`, false, nil, nil},
		{`a)`, false, nil, nil},
		{`[b-a]`, false, nil, nil},
		{`*a`, false, nil, nil},
		{`*a`, true, nil, nil},
		{`\q`, false, nil, nil},
		{`a\`, false, nil, nil},
		{`\p`, false, nil, nil},
		{`\p{Greek`, false, nil, nil},
		{`\p{Nonsense}`, false, nil, nil},
		// Only Go knows these.
		{`(?P<n>a)(?P<n>b)`, false, nil, nil},
		{`(?P<n>a)|(?<n>b)`, true, nil, nil},
		{`(?P<n>a(?P<m>b(?P<n>c)){0})`, false, nil, nil},
		{`\p{Letter}`, false, nil, nil},
		{`\P{Letter}`, true, nil, nil},
		{`[\p{greek}]`, false, nil, nil},
		{`\p{^Uppercase_Letter}`, false, nil, nil},
		{`\Qx\E\p{LC}`, false, nil, nil},
		{`\p{Cn}`, false, nil, nil},
		{`\pl`, false, nil, nil},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.pattern, c.ignoreCase), func(t *testing.T) {
			m := compilePattern(c.pattern, c.ignoreCase)
			if c.matches == nil {
				require.ErrorIs(t, m.err, ErrBadPattern)
				assert.NotContains(t, m.err.Error(), "\n")
				return
			}
			require.NoError(t, m.err)
			for _, s := range c.matches {
				assert.True(t, matches(t, m, s), "%q", s)
			}
			for _, s := range c.others {
				assert.False(t, matches(t, m, s), "%q", s)
			}
		})
	}
}

// matches is match when nothing stops it.
func matches(t *testing.T, m *matcher, s string) bool {
	t.Helper()
	matched, err := m.match(nil, s)
	require.NoError(t, err)
	return matched
}

func TestPatternsOfRequestsAreKeptWithinBounds(t *testing.T) {
	p := newParamPattern(2, false)
	var params Params
	compiled := func(text string) *matcher {
		params.SetString(2, text)
		m, err := p.matcher(&params)
		require.NoError(t, err)
		return m
	}
	assert.Same(t, compiled("a"), compiled("a"))
	long := strings.Repeat("a", patternMaxBytes)
	assert.Same(t, compiled(long), compiled(long))
	params.SetString(2, long+"a")
	_, err := p.matcher(&params)
	require.ErrorIs(t, err, ErrBadPattern)
	assert.NotContains(t, p.kept, long+"a", "what is refused for its length is not kept")
	for i := range 3 * patternsKept {
		text := fmt.Sprintf("p%d", i)
		assert.True(t, matches(t, compiled(text), "x"+text))
		assert.Contains(t, p.kept, text)
		assert.LessOrEqual(t, len(p.kept), patternsKept)
	}
	assert.Len(t, p.kept, patternsKept)
}

func TestABadPatternOfARequestIsCompiledOnce(t *testing.T) {
	p := newParamPattern(2, false)
	var params Params
	params.SetString(2, "(")
	_, first := p.matcher(&params)
	_, second := p.matcher(&params)
	require.ErrorIs(t, first, ErrBadPattern)
	assert.Same(t, errors.Unwrap(first), errors.Unwrap(second))
}

// wideStrings has 3000 rows of 300 strings. The first 100 rows use the first 100 strings.
func wideStrings() rowset.RowSet {
	b := rowset.NewStringBuilder(3001, 3000)
	for i := range 3000 {
		b.Append(fmt.Appendf(nil, "s%d", i%300))
	}
	return rowset.Dense(rowset.NewBatch(make([]int64, 3000), b.Column()))
}

func TestEachStringReachedIsAskedOnce(t *testing.T) {
	for name, tree := range map[string]string{"regex": regex("7$", ""), "in": in(text, `"s7","s17"`)} {
		t.Run(name, func(t *testing.T) {
			p := mustPred(t, tree)
			rows := rowset.Take(wideStrings(), 100)
			m := p.evaluator()
			m.begin(nil, rows, nil)
			full, out := fullMask(100), mask{}
			c := chunk{n: 100}
			require.NoError(t, m.test(p.root, &c, &full, &out, 0))
			verdicts, asked := m.boundTests[p.root].verdicts, 0
			for place, v := range verdicts {
				// A row with a verdict is not asked again. So when the test inverts the verdicts,
				// the result is inverted.
				if v != verdictUnknown {
					verdicts[place] = verdictTrue + verdictFalse - v
					asked++
				}
			}
			assert.Equal(t, 100, asked)
			var turned mask
			require.NoError(t, m.test(p.root, &c, &full, &turned, 0))
			for k := range c.words() {
				assert.Equal(t, full[k]&^out[k], turned[k])
			}
		})
	}
}

func TestPredAndExprAreForAnyGoroutine(t *testing.T) {
	predText, exprText := bi("and", regexParam("2"), cmp(id, "==", weight)), bi("add", id, bi("mul", id, weight))
	p, tree := mustPred(t, predText), parseJSON(t, predText)
	e, exprTree := mustExpr(t, exprText), parseJSON(t, exprText)
	rows := wideStrings()
	var done sync.WaitGroup
	for g := range 4 {
		done.Go(func() {
			for i := range 2 * patternsKept / 4 {
				var params Params
				params.SetFloat(4, float64(i%2))
				params.SetString(2, fmt.Sprintf("^s%d", (g+i)%(2*patternsKept)))
				checkPred(t, p, tree, rowset.Take(rows, 50+i), &params)
				checkExpr(t, e, exprTree, rowset.Take(rows, 50+i), &params)
			}
		})
	}
	done.Wait()
}

func TestSmallInputsAllocateTheResultOnly(t *testing.T) {
	if raceDetector {
		t.Skip("allocations vary under the race detector")
	}
	rows, params := world(), worldParams()
	selected := rowset.RowSet{Batch: rows.Batch, Rows: []int32{3, 0, 2}, N: 3}
	e := mustExpr(t, bi("mul", id, bi("coalesce", weight, num("0.2"))))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { columnOf(e, rows, params) }), 1.0, "values")
	assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { columnOf(e, selected, params) }), 2.0, "values and validity")
	for _, tree := range []string{
		cmp(score, ">=", num("0.4")),
		bi("or", in(text, `"us"`), bi("and", regex("D", ""), regexParam("2"))),
	} {
		p := mustPred(t, tree)
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { _, _ = p.Filter(nil, nil, rows, params) }), 1.0, "%s", tree)
	}
}
