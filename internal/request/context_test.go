package request

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan/expr"
	"github.com/rankd/rankd/registry"
)

// typedParams returns the built-in tables with a parameter of each type for the context.
func typedParams() *registry.Registry {
	tables := registrytest.BuiltIn()
	for i, p := range [][]string{
		{"country", "string", registrytest.Nullable}, {"hour", "int"}, {"lat", "float"}, {"logged_in", "bool"},
		{"seen", "int_list", "override = true"}, {"langs", "string_list", "override = true", registrytest.Nullable}, {"bm25", "float_list"},
	} {
		tables.Params += registrytest.Param(10+i, p[0], p[1], append(p[2:], "context = true")...)
	}
	return tables.Load()
}

// The ids of typedParams.
const (
	paramCountry registry.ParamID = 10 + iota
	paramHour
	paramLat
	paramLoggedIn
	paramSeen
	paramLangs
	paramBM25
)

// checkType checks that a parameter has no value of another type. An int can also be read as a
// float.
func checkType(t *testing.T, params *expr.Params, p *registry.Param) {
	_, isFloat := params.Float(p.ID)
	_, isInt := params.Int(p.ID)
	_, isBool := params.Bool(p.ID)
	_, isString := params.String(p.ID)
	_, isInts := params.IntList(p.ID)
	_, isStrings := params.StringList(p.ID)
	_, isFloats := params.FloatList(p.ID)
	for _, c := range []struct {
		has, may bool
	}{
		{isFloat, p.Type == registry.Float || p.Type == registry.Int}, {isInt, p.Type == registry.Int}, {isBool, p.Type == registry.Bool},
		{isString, p.Type == registry.String}, {isInts, p.Type == registry.IntList}, {isStrings, p.Type == registry.StringList}, {isFloats, p.Type == registry.FloatList},
	} {
		assert.False(t, c.has && !c.may, "%s of type %s", p.Name, p.Type)
	}
}

func TestContext(t *testing.T) {
	reg := typedParams()
	req, err := Parse([]byte(`{"user_id": 1, "context": {"country": "DE", "hour": 9007199254740993, "lat": 1e-3, "logged_in": false,
		"seen": [3, -9223372036854775808, 9223372036854775807, 3, 2.0], "langs": ["de", "", "de"], "bm25": [1, null, -0.5, 9007199254740993]}}`), reg)
	require.NoError(t, err)
	country, ok := req.parsed.String(paramCountry)
	assert.True(t, ok)
	assert.Equal(t, "DE", country)
	hour, ok := req.parsed.Int(paramHour)
	assert.True(t, ok)
	assert.Equal(t, int64(1<<53+1), hour, "exact beyond 2^53")
	lat, ok := req.parsed.Float(paramLat)
	assert.True(t, ok)
	assert.Equal(t, 0.001, lat)
	loggedIn, ok := req.parsed.Bool(paramLoggedIn)
	assert.True(t, ok, "false is a value")
	assert.False(t, loggedIn)
	seen, ok := req.parsed.IntList(paramSeen)
	assert.True(t, ok)
	assert.Equal(t, []int64{3, math.MinInt64, math.MaxInt64, 3, 2}, seen, "in the request's order, repeats kept")
	langs, ok := req.parsed.StringList(paramLangs)
	assert.True(t, ok)
	assert.Equal(t, []string{"de", "", "de"}, langs)
	scores, ok := req.parsed.FloatList(paramBM25)
	assert.True(t, ok)
	require.Len(t, scores, 4)
	assert.True(t, math.IsNaN(scores[1]), "a null")
	assert.Equal(t, []float64{1, -0.5, 1 << 53}, slices.Delete(scores, 1, 2))

	for _, doc := range []string{`{"user_id": 1}`, `{"user_id": 1, "context": null}`, `{"user_id": 1, "context": {}}`, `{"user_id": 1, "context": {"country": null, "langs": null}}`} {
		req, err := Parse([]byte(doc), reg)
		require.NoError(t, err, doc)
		_, ok := req.parsed.String(paramCountry)
		assert.False(t, ok, doc)
	}
	req, err = Parse([]byte(`{"user_id": 1, "context": {"seen": []}}`), reg)
	require.NoError(t, err)
	seen, ok = req.parsed.IntList(paramSeen)
	assert.True(t, ok, "an empty list is not a null")
	assert.Empty(t, seen)
}

func TestOverridesCountOverTheContext(t *testing.T) {
	reg := typedParams()
	for overrides, want := range map[string]any{`{}`: []int64{1}, `{"seen": [2]}`: []int64{2}} {
		// The user is found wherever it is in the document.
		for _, doc := range []string{
			`{"user_id": 1, "context": {"seen": [1]}, "param_overrides": ` + overrides + `}`,
			`{"param_overrides": ` + overrides + `, "user_id": 1, "context": {"seen": [1]}}`,
		} {
			req, err := Parse([]byte(doc), reg)
			require.NoError(t, err, doc)
			seen, _ := req.parsed.IntList(paramSeen)
			assert.Equal(t, want, seen, doc)
		}
	}
	req, err := Parse([]byte(`{"user_id": 1, "context": {"langs": ["de"]}, "param_overrides": {"langs": null}}`), reg)
	require.NoError(t, err)
	_, ok := req.parsed.StringList(paramLangs)
	assert.False(t, ok, "a null, too")
}

// contextFaults are values of the context that are refused, as JSON, and their errors.
var contextFaults = []struct{ name, context, detail string }{
	{"Array", `[]`, "context must be an object or null, got an array"},
	{"Text", `"hour"`, `context must be an object or null, got "hour"`},
	{"Unknown", `{"colour": 1}`, `unknown context member "colour"`},
	{"Override", `{"weight": 1}`, `context member "weight" is not for the context: param_overrides sets it`},
	{"CaseOfTheName", `{"Hour": 1}`, `unknown context member "Hour"`},
	{"Null", `{"hour": null}`, `context member "hour" must not be null`},
	{"IntString", `{"hour": "18"}`, `context member "hour" must be an integer of 64 bits, got "18"`},
	{"IntFraction", `{"hour": 18.5}`, "got the number 18.5"},
	{"IntBool", `{"hour": true}`, "got true"},
	{"IntTooLarge", `{"hour": 9223372036854775808}`, "must be an integer of 64 bits, got the integer 9223372036854775808"},
	{"IntFarTooLarge", `{"hour": 18446744073709551616}`, "must be an integer of 64 bits, got the number 1.8446744073709552e+19"},
	{"IntTooSmall", `{"hour": -9223372036854775809}`, "must be an integer of 64 bits"},
	{"IntHuge", `{"hour": 1e300}`, "must be an integer of 64 bits, got the number 1e+300"},
	{"IntInexact", `{"hour": 9007199254740994.0}`, "must be an integer of 64 bits"},
	{"FloatString", `{"lat": "nan"}`, `context member "lat" must be a number, got "nan"`},
	{"StringNumber", `{"country": 49}`, `context member "country" must be a string, got the integer 49`},
	{"BoolNumber", `{"logged_in": 1}`, "must be true or false, got the integer 1"},
	{"ListNumber", `{"seen": 1}`, `context member "seen" must be a list of integers, got the integer 1`},
	{"ListNull", `{"seen": [1, null]}`, "must be a list of integers of 64 bits, but item 2 is null"},
	{"ListFraction", `{"seen": [0.5]}`, "item 1 is the number 0.5"},
	{"ListOfLists", `{"seen": [[1]]}`, "item 1 is an array"},
	{"FloatsText", `{"bm25": [1, "2"]}`, "must be a list of numbers, but item 2 is \"2\""},
	{"StringsNumber", `{"langs": ["de", 1]}`, "must be a list of strings, but item 2 is the integer 1"},
	{"StringsText", `{"langs": "de"}`, `must be a list of strings, got "de"`},
	{"ListTooLong", `{"seen": [` + strings.Repeat("1,", registry.ListItemsMax) + `1]}`, "must be a list of at most 65536 integers, got 65537"},
	{"StringsTooLong", `{"langs": ["` + strings.Repeat("x", TextBytesMax) + `", "y"]}`, "must be a list of strings of at most 1048576 bytes together, got 1048577"},
	{"StringTooLong", `{"country": "` + strings.Repeat("x", TextBytesMax+1) + `"}`, "must be a string of at most 1048576 bytes, got 1048577"},
	{"LastDuplicate", `{"hour": 1, "hour": "x"}`, `context member "hour"`},
}

func TestContextFaults(t *testing.T) {
	reg := typedParams()
	for _, c := range contextFaults {
		t.Run(c.name, func(t *testing.T) {
			doc := `{"user_id": 1, "request_id": "r", "context": ` + c.context + `, "param_overrides": {"nope": 1}}`
			_, err := Parse([]byte(doc), reg)
			var refused *Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, CodeInvalid, refused.Code)
			assert.Equal(t, "r", refused.RequestID)
			assert.Contains(t, refused.Detail, c.detail)
			assert.NotContains(t, refused.Detail, "\n")
			assert.Less(t, len(refused.Detail), 300)
			assert.Positive(t, refused.Offset)

			// The library refuses the same values if Go code passes them.
			var values map[string]any
			if c.name == "LastDuplicate" || len(c.context) > 1000 || json.Unmarshal([]byte(c.context), &values) != nil {
				return
			}
			_, err = byContext.values(expr.Params{}, values, reg)
			assert.Error(t, err, "as %v", values)
		})
	}
	_, err := Parse([]byte(`{"user_id": 1, "param_overrides": {"hour": 1}}`), reg)
	assert.EqualError(t, err, `Invalid param_overrides: parameter "hour" cannot be overridden: the context sets it`)
	_, err = Parse([]byte(`{"user_id": 1, "context": {"lat": 1e999}}`), reg)
	assert.ErrorContains(t, err, CodeInvalidJSON)
}

func TestContextOfGoValues(t *testing.T) {
	type id int64
	reg := typedParams()
	params, err := byContext.values(expr.Params{}, map[string]any{
		"country": "DE", "hour": json.Number("9007199254740993"), "lat": float32(0.5), "logged_in": true,
		"seen": []id{1, math.MaxInt64}, "langs": []any{"de", "en"},
	}, reg)
	require.NoError(t, err)
	hour, _ := params.Int(paramHour)
	assert.Equal(t, int64(1<<53+1), hour)
	seen, _ := params.IntList(paramSeen)
	assert.Equal(t, []int64{1, math.MaxInt64}, seen)
	langs, _ := params.StringList(paramLangs)
	assert.Equal(t, []string{"de", "en"}, langs)
	lat, _ := params.Float(paramLat)
	assert.Equal(t, 0.5, lat)

	for name, c := range map[string]struct {
		values map[string]any
		want   string
	}{
		"NaN":            {map[string]any{"lat": math.NaN()}, `context member "lat" must be a finite number, got NaN`},
		"Infinity":       {map[string]any{"lat": math.Inf(-1)}, `must be a finite number, got -Inf`},
		"NaNInAList":     {map[string]any{"seen": []float64{1, math.NaN()}}, `must be a finite number, got NaN (item 2)`},
		"Struct":         {map[string]any{"hour": struct{}{}}, `context member "hour" cannot be a struct {}`},
		"Pointer":        {map[string]any{"hour": new(int)}, `cannot be a *int`},
		"NumberTooLarge": {map[string]any{"hour": uint64(math.MaxUint64)}, `must be an integer of 64 bits, got the integer 18446744073709551615`},
		"JSONNumber":     {map[string]any{"hour": json.Number("1x")}, `must be a number, got "1x"`},
		"ListTooLong":    {map[string]any{"seen": make([]int, registry.ListItemsMax+5)}, `must be a list of at most 65536 integers`},
		"Unknown":        {map[string]any{"b": 1, "a": 1}, `unknown context member "a"`},
		"Weight":         {map[string]any{"weight": 1}, `is not for the context`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := byContext.values(expr.Params{}, c.values, reg)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzInteger compares with arbitrary precision. A JSON number is exactly an int64, or it is
// refused.
func FuzzInteger(f *testing.F) {
	for _, text := range []string{"0", "-0", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e3", "1.5", "9007199254740993.0", "9007199254740991.0", "1.000000000000000005", "12.50e1", "1e19", "-9223372036854775808"} {
		f.Add(text)
	}
	reg := typedParams()
	f.Fuzz(func(t *testing.T, text string) {
		var number json.Number
		if json.Unmarshal([]byte(text), &number) != nil || strings.TrimSpace(text) != text || number == "" || text[0] == '"' {
			t.Skip()
		}
		req, err := Parse([]byte(`{"user_id": 1, "context": {"hour": `+text+`}}`), reg)
		if err != nil {
			return
		}
		got, ok := req.parsed.Int(paramHour)
		require.True(t, ok)
		if want, err := strconv.ParseInt(text, 10, 64); err == nil {
			require.Equal(t, want, got)
			return
		}
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		require.Zero(t, want.Cmp(new(big.Rat).SetInt64(got)), "%s is not %d", text, got)
		require.Less(t, max(got, -got), int64(1<<53))
	})
}
