package expr

import (
	"math"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// hostilePatterns are short texts that would take long to parse, to compile or to match. Each
// has the text of its error.
var hostilePatterns = []struct {
	name, text string
	says       string
}{
	{"OneByteTooLong", strings.Repeat("a", 4097), "pattern of 4097 bytes, at most 4096 are accepted"},
	{"EightKilobytesOfRepeats", strings.Repeat("(x?){1000}", 820), "pattern of 8200 bytes, at most 4096 are accepted"},
	{"Megabytes", strings.Repeat("(", 15<<20), "pattern of 15728640 bytes, at most 4096 are accepted"},
	{"RepeatsOfCaptures", strings.Repeat("(x?){1000}", 400), "pattern compiles to 32001600 bytes, at most 262144 are accepted"},
	{"RepeatsOfRepeats", strings.Repeat("(?:(?:x{10}){10}){10}", 40), "compiles to 1600160 bytes"},
	{"OptionalRepeats", strings.Repeat("(?:x{0,1000})", 10), "compiles to 800040 bytes"},
	{"OpenRepeats", strings.Repeat("(?:x{1000,})", 10), "compiles to 400840 bytes"},
	{"ClassesOfMuchMemory", strings.Repeat(`\x{100}\pL`, 51), "compiles to 273156 bytes"},
	{"ManyUnicodeClasses", strings.Repeat(`\pL|`, 1000), "pattern of 4000 bytes with character classes of 4984000 steps"},
	{"ManyUnicodeClassesInOne", "[" + strings.Repeat(`\pL\PL`, 600) + "]", "pattern of 3602 bytes with character classes of 5980800 steps"},
	{"FoldedRanges", "(?i)" + strings.Repeat(`[B-𞥂]`, 500), "character classes of 62592500 steps, at most 262144 are accepted"},
	{"FoldedEscapedRanges", "(?i)" + strings.Repeat(`[\102-\x{1E942}]`, 3), "character classes of 375555 steps"},
	{"FoldedRangeAfterAClassAndADash", "(?i)" + strings.Repeat(`[\d-B-𞥂]`, 3), "character classes of 375555 steps"},
	{"FoldedRangeAfterAPosixClass", "(?mi:" + strings.Repeat(`[[:digit:]-B-𞥂]`, 3) + ")", "character classes of 375555 steps"},
}

func TestHostilePatternsAreRefused(t *testing.T) {
	for _, c := range hostilePatterns {
		t.Run(c.name, func(t *testing.T) {
			literal := newLiteralPattern(c.text, false)
			_, err := literal.matcher(nil)
			require.ErrorIs(t, err, ErrBadPattern)
			assert.Contains(t, err.Error(), c.says)
			assert.Contains(t, err.Error(), "bytes")
			assert.Less(t, len(err.Error()), 300)

			param := newParamPattern(2, false)
			var params Params
			params.SetString(2, c.text)
			_, again := param.matcher(&params)
			assert.EqualError(t, again, err.Error(), "a literal and a parameter obey the same rule")
		})
	}
}

func TestIgnoringCaseCountsAsAFlagOfThePattern(t *testing.T) {
	text := strings.Repeat(`[B-𞥂]`, 3)
	assert.NoError(t, compilePattern(text, false).err, "no range is folded")
	assert.ErrorContains(t, compilePattern(text, true).err, "character classes of 375555 steps")
	assert.NoError(t, compilePattern(`[\x00-\x{10FFFF}][^B-𞥂][\x{4E00}-\x{9FFF}]`, true).err, "a few are fine")
}

// usualPatterns are patterns that people write. Each is far below the bounds.
var usualPatterns = []string{
	``, `US`, `^(US|CA)$`, `^[[:upper:]]{2}$`, `\bUS\b`, `(?i)(u)(s)?`, `[^A-Z]`, `^\s|\s$`, `(?P<country>U.)`, `(?<n>a)(b(c(d)))`,
	`a{1000}`, `(a{100}){10}`, `\p{L}{2,100}`, `[\p{Greek}\p{Cyrillic}-]+`, `[]a(b]`, `[^](]+(x)`, `[[:alpha:](](x)`, `[[:]+(x)`, `[[:a(](]b)`, `[[:a(](?P<n>]b)`,
	`\Q(a\E(b)`, `\((a)\)`, `[\](](a)`, `(?i:a(?-i)(b))`, `((((((x))))))`, `()`, `(|a)*`, `((a*)*)*`, `\x{41}(b)`, `\101(b)`,
	strings.Repeat("(word)|", 500) + "x", strings.Repeat("(", 300) + strings.Repeat(")", 300), `(?s:.)(.)`, `[\Qa]`, `\pN(a)`, `[a\-(]`,
}

func TestPatternsAreCompiledWithoutCaptures(t *testing.T) {
	for _, text := range usualPatterns {
		for _, ignoreCase := range []bool{false, true} {
			checkPattern(t, text, ignoreCase, []string{"", "US", "us", "(", "(a)", "aAbB", "ab]", "wordx", "x", "\n", "α", "\xff"})
		}
	}
	m := compilePattern(strings.Repeat("()", 2000), false)
	require.NoError(t, m.err)
	assert.Zero(t, m.re.NumSubexp(), "each capture would cost each thread of a match two words")
}

// checkPattern compares a compiled pattern with what package regexp makes of the same text.
func checkPattern(t *testing.T, text string, ignoreCase bool, inputs []string) {
	t.Helper()
	m := compilePattern(text, ignoreCase)
	flags := syntax.Perl
	source := text
	if ignoreCase {
		flags |= syntax.FoldCase
		source = "(?i)" + text
	}
	if m.err != nil && strings.Contains(m.err.Error(), "two groups have the name") {
		names := regexp.MustCompile(source).SubexpNames()
		slices.Sort(names)
		named := slices.DeleteFunc(names, func(name string) bool { return name == "" })
		assert.Less(t, len(slices.Compact(slices.Clone(named))), len(named), "%q is refused: %v", text, m.err)
		return
	}
	if m.err != nil {
		if scanPattern(text, ignoreCase).foreign == "" && !strings.Contains(m.err.Error(), "are accepted") {
			_, err := regexp.Compile(source)
			assert.Error(t, err, "%q is refused: %v", text, m.err)
		}
		return
	}
	require.Zero(t, m.re.NumSubexp(), "%q", text)
	want, err := regexp.Compile(source)
	require.NoError(t, err, "%q", text)
	for _, s := range inputs {
		assert.Equal(t, want.MatchString(s), matches(t, m, s), "%q on %q", text, s)
		slowly, err := m.matchSlowly(&countdown{n: math.MaxInt}, s)
		require.NoError(t, err)
		assert.Equal(t, want.MatchString(s), slowly, "%q slowly on %q", text, s)
	}

	tree, err := syntax.Parse(m.re.String(), flags)
	require.NoError(t, err)
	estimate := sizeOf(tree)
	prog, err := syntax.Compile(tree.Simplify())
	require.NoError(t, err)
	assert.LessOrEqual(t, len(prog.Inst), estimate.instructions+programFrame, "%q", text)
	assert.LessOrEqual(t, estimate.bytes(), patternMaxSize)
}

func TestSizeIsEstimatedWithinBounds(t *testing.T) {
	for _, c := range []struct {
		text  string
		exact bool
	}{
		{`abc`, true}, {`a|bc|[x-z]`, true}, {`a?b+`, true}, {`a{3}`, true}, {`a{2,5}`, true}, {`a{0,4}`, true}, {`^a$`, true},
		{`a*`, false}, {`(?:a*)*`, false}, {`a{3,}`, false}, {`a{0}`, false}, {`(?:a|b*){2,7}`, false}, {`(?i)straße`, true},
	} {
		tree, err := syntax.Parse(c.text, syntax.Perl)
		require.NoError(t, err)
		estimate := sizeOf(tree).instructions + programFrame
		prog, err := syntax.Compile(tree.Simplify())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, estimate, len(prog.Inst), c.text)
		assert.LessOrEqual(t, estimate, 2*len(prog.Inst)+programFrame, c.text)
		if c.exact {
			assert.Equal(t, len(prog.Inst), estimate, c.text)
		}
	}
}

func TestFilterStopsBetweenStrings(t *testing.T) {
	rows := wideStrings() // of 300 strings, all in the first chunk
	for name, tree := range map[string]string{"literal": regex("7$", ""), "param": regexParam("2"), "left of an or": bi("or", regex("7$", ""), regexParam("2"))} {
		t.Run(name, func(t *testing.T) {
			p := mustPred(t, tree)
			var params Params
			params.SetString(2, "7$")
			want, err := p.Filter(nil, nil, rows, &params)
			require.NoError(t, err)
			for _, n := range []int{1, 2, 150, 299} {
				stop := countdown{n: n}
				kept, err := p.Filter(&stop, nil, rows, &params)
				require.Same(t, rowset.ErrStopped, err)
				assert.Zero(t, kept)
				assert.Equal(t, n+1, stop.asked, "once a string, and no more once told")
			}
			kept, err := p.Filter(&countdown{n: math.MaxInt}, nil, rows, &params)
			require.NoError(t, err)
			assert.Equal(t, want, kept)
		})
	}
}

func TestAStoppedErrorIsNotAnError(t *testing.T) {
	// The chunk's error belongs to a later row than the string that is asked for again.
	p := mustPred(t, bi("and", regex("^s", ""), regex("(", "")))
	_, err := p.Filter(nil, nil, wideStrings(), nil)
	require.ErrorIs(t, err, ErrBadPattern)
	stop := countdown{n: 5}
	_, err = p.Filter(&stop, nil, wideStrings(), nil)
	assert.Same(t, rowset.ErrStopped, err)
}

func TestAMatchOfALongStringStops(t *testing.T) {
	m := compilePattern(strings.Repeat("x?", 1000)+"y$", false)
	require.NoError(t, m.err)
	long := strings.Repeat("x", 1<<20)
	stop := countdown{n: 3}
	_, err := m.match(&stop, long) // without a stop some 2^31 steps
	require.Same(t, rowset.ErrStopped, err)
	assert.Equal(t, 4, stop.asked, "once in a while, and no more once told")

	m, long = compilePattern("x{20}y$", false), long[:1<<18]
	require.Greater(t, len(long)*m.instructions, matchSteps)
	for s, want := range map[string]bool{long: false, long + "y": true} {
		stop = countdown{n: math.MaxInt}
		matched, err := m.match(&stop, s)
		require.NoError(t, err)
		assert.Equal(t, want, matched)
		assert.Greater(t, stop.asked, 4)
	}
}

// A string whose match was stopped has no verdict.
func TestAFilterWhoseLastMatchIsStoppedIsStopped(t *testing.T) {
	b := rowset.NewStringBuilder(3001, 1)
	b.Append([]byte(strings.Repeat("x", 1<<17)))
	rows := rowset.Dense(rowset.NewBatch([]int64{1}, b.Column()))
	p := mustPred(t, regex("x{20}y", ""))
	asked := countdown{n: math.MaxInt}
	_, err := p.Filter(&asked, nil, rows, nil)
	require.NoError(t, err)
	for n := range asked.asked {
		_, err := p.Filter(&countdown{n: n}, nil, rows, nil)
		require.Same(t, rowset.ErrStopped, err)
	}
}

// FuzzPattern compares patterns with package regexp, on any text. A text is refused here if it
// is refused there. A text that is accepted here matches the same strings.
func FuzzPattern(f *testing.F) {
	for _, text := range usualPatterns {
		f.Add(text, "US", true)
	}
	for _, c := range hostilePatterns {
		if len(c.text) <= 10_000 { // package regexp, with the fuzzer's counters, takes long for megabytes
			f.Add(c.text, "x", false)
		}
	}
	f.Fuzz(func(t *testing.T, text, input string, ignoreCase bool) {
		input = input[:min(len(input), 100)] // package regexp, with captures, is slow for more
		checkPattern(t, text, ignoreCase, []string{input, ""})
	})
}

// randomPattern writes a pattern that may use all of the grammar.
func randomPattern(rng *rand.Rand, depth int) string {
	atoms := []string{
		"a", "B", ".", `\d`, `\W`, `[a-c]`, `[^x(]`, `[]()]`, `[[:alpha:]]`, `\pL`, `\x{3b1}`, `\(`, `\Q(\E`, "^", "$", `\b`, `[\]-a(]`, "é",
	}
	switch pick := rng.IntN(9); {
	case depth == 0 || pick < 3:
		return atoms[rng.IntN(len(atoms))]
	case pick == 3:
		return "(" + randomPattern(rng, depth-1) + ")"
	case pick == 4:
		heads := []string{"(?P<n>", "(?<m>", "(?:", "(?i:", "(?s-i:", "(?U:", "((?i)"}
		return heads[rng.IntN(len(heads))] + randomPattern(rng, depth-1) + ")"
	case pick == 5:
		tails := []string{"*", "+", "?", "*?", "{2}", "{0,3}", "{2,}", "??"}
		return "(" + randomPattern(rng, depth-1) + ")" + tails[rng.IntN(len(tails))]
	case pick == 6:
		return randomPattern(rng, depth-1) + "|" + randomPattern(rng, depth-1)
	default:
		return randomPattern(rng, depth-1) + randomPattern(rng, depth-1)
	}
}

func TestRandomPatternsMatchLikePackageRegexp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	alphabet := []string{"a", "b", "B", "A", "x", "(", ")", "]", "1", " ", "\n", "é", "α", "Α", "k", "\xff"}
	for range 3000 {
		inputs := make([]string, 6)
		for i := range inputs {
			for range rng.IntN(8) {
				inputs[i] += alphabet[rng.IntN(len(alphabet))]
			}
		}
		checkPattern(t, randomPattern(rng, 5), rng.IntN(2) == 0, inputs)
	}
}
