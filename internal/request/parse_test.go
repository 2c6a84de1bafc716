package request

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

func builtin(t testing.TB) *registry.Registry {
	t.Helper()
	reg, err := registry.Default("test")
	require.NoError(t, err)
	return reg
}

func TestParseUserID(t *testing.T) {
	reg := builtin(t)
	for doc, want := range map[string]int64{
		`{"user_id": 1}`:                                          1,
		`{"user_id": 4294967295}`:                                 4294967295,
		`{"user_id": "1"}`:                                        1,
		`{"user_id": "4294967295"}`:                               4294967295,
		`{"user_id": "000000000000000000000000000012"}`:           12,
		`{"user_id": "\u0031\u0032"}`:                             12,
		`{"user_id": 9, "user_id": 7}`:                            7,
		`{"user_id": null, "user_id": 7}`:                         7,
		" \n\t{\"user_id\"\r\n: 5} \n":                            5,
		"\ufeff{\"user_id\": 5}":                                  5,
		`{"user_id": 3, "trace": null, "scheduling": null}`:       3,
		`{"user_id": 3, "USER_ID": -1, "unknown": [1, {"a": 2}]}`: 3,
	} {
		req, err := Parse([]byte(doc), reg)
		if assert.NoError(t, err, doc) {
			assert.Equal(t, want, req.UserID, doc)
		}
	}
	for _, value := range []string{
		`0`, `-0`, `-1`, `4294967296`, `18446744073709551615`, `18446744073709551616`, `-9223372036854775808`,
		`1.0`, `1.5`, `-0.0`, `1e2`, `null`, `true`, `[]`, `[1]`, `{}`,
		`""`, `" "`, `" 1"`, `"1 "`, `"1\n"`, `"1 2"`, `"+1"`, `"-1"`, `"0"`, `"000"`, `"1.0"`, `"1e2"`, `"0x1"`, `"abc"`,
		`"4294967296"`, `"18446744073709551617"`, `"99999999999999999999999999"`, `"١"`, `"１"`,
	} {
		const before = `{"request_id": "r1", "user_id": `
		_, err := Parse([]byte(before+value+`}`), reg)
		var refused *Error
		if assert.ErrorAs(t, err, &refused, value) {
			assert.Equal(t, CodeInvalid, refused.Code, value)
			assert.Equal(t, "r1", refused.RequestID, "echoed")
			assert.Contains(t, refused.Detail, "user_id", value)
			assert.NotContains(t, refused.Detail, "\n", value)
			assert.EqualValues(t, len(before), refused.Offset, value)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	reg := builtin(t)
	for _, tc := range []struct {
		name, doc, code, detail string
	}{
		{"NotJSON", `hello`, CodeInvalidJSON, "at byte offset 0"},
		{"Truncated", `{"user_id": 1`, CodeInvalidJSON, "at byte offset 13"},
		{"LoneSurrogate", `{"user_id": 1, "request_id": "\ud800"}`, CodeInvalidJSON, ""},
		{"NumberOverflow", `{"user_id": 1, "x": -1e400}`, CodeInvalidJSON, ""},
		{"TwoDocuments", `{"user_id": 1} {}`, CodeInvalidJSON, ""},
		{"NoObject", `[{"user_id": 1}]`, CodeInvalid, "missing required field: user_id"},
		{"Scalar", `1`, CodeInvalid, "missing required field: user_id"},
		{"NoUserID", `{}`, CodeInvalid, "missing required field: user_id"},
		{"UserIDBeyond64Bits", `{"user_id": 18446744073709551616}`, CodeInvalid,
			"user_id must be an integer from 1 to 4294967295, got a number out of that range"},
		{"UserIDFarBelow", `{"user_id": -9223372036854775809}`, CodeInvalid, "got a number out of that range"},
		{"UserIDFraction", `{"user_id": 1.5}`, CodeInvalid, "got the number 1.5"},
		{"UserIDFloatAtTheEnd", `{"user_id": 4294967295.0}`, CodeInvalid, "got the number 4294967295.0"},
		{"UserIDBeforeOverrides", `{"user_id": 0, "param_overrides": {"nope": 1}}`, CodeInvalid, "user_id"},
		{"OverridesBeforePlan", `{"user_id": 1, "plan": 1, "param_overrides": 5}`, CodeInvalidParams, "must be an object or null, got the integer 5"},
		{"PlanBeforeDeadline", `{"user_id": 1, "plan": 1, "deadline_ms": 0}`, CodeInvalid, "plan must be the name of a plan"},
		{"OverridesArray", `{"user_id": 1, "param_overrides": []}`, CodeInvalidParams, "got an array"},
		{"UnknownParam", `{"user_id": 1, "param_overrides": {"nope": 1}}`, CodeInvalidParams, `unknown parameter "nope"`},
		{"ParamNamesAreCaseSensitive", `{"user_id": 1, "param_overrides": {"Weight": 1}}`, CodeInvalidParams, `"Weight"`},
		{"ParamIDIsNoName", `{"user_id": 1, "param_overrides": {"4": 1}}`, CodeInvalidParams, `"4"`},
		{"LongNameIsCut", `{"user_id": 1, "param_overrides": {"` + strings.Repeat("x", 1000) + `": 1}}`, CodeInvalidParams, `x…" (1000 bytes)`},
		{"FloatString", `{"user_id": 1, "param_overrides": {"weight": "1"}}`, CodeInvalidParams, `"weight" must be a number, got "1"`},
		{"FloatBool", `{"user_id": 1, "param_overrides": {"weight": true}}`, CodeInvalidParams, "got true"},
		{"FloatNull", `{"user_id": 1, "param_overrides": {"weight": null}}`, CodeInvalidParams, `"weight" must not be null`},
		{"FloatObject", `{"user_id": 1, "param_overrides": {"weight": {}}}`, CodeInvalidParams, "got an object"},
		{"StringNumber", `{"user_id": 1, "param_overrides": {"blocklist_regex": 1}}`, CodeInvalidParams, `"blocklist_regex" must be a string, got the integer 1`},
		{"StringFloat", `{"user_id": 1, "param_overrides": {"blocklist_regex": 1.5}}`, CodeInvalidParams, "must be a string"},
		{"LastDuplicateIsChecked", `{"user_id": 1, "param_overrides": {"weight": 1, "weight": "x"}}`, CodeInvalidParams, `"weight"`},
		{"PlanNumber", `{"user_id": 1, "plan": 5}`, CodeInvalid, "plan"},
		{"PlanEmpty", `{"user_id": 1, "plan": ""}`, CodeInvalid, "plan"},
		{"DeadlineZero", `{"user_id": 1, "deadline_ms": 0}`, CodeInvalid, "deadline_ms"},
		{"DeadlineNegative", `{"user_id": 1, "deadline_ms": -5}`, CodeInvalid, "deadline_ms"},
		{"DeadlineFloat", `{"user_id": 1, "deadline_ms": 5.0}`, CodeInvalid, "deadline_ms"},
		{"DeadlineBeyond64Bits", `{"user_id": 1, "deadline_ms": 18446744073709551616}`, CodeInvalid,
			"deadline_ms must be an integer from 1 to 18446744073709551615"},
		{"DeadlineBeforeScheduling", `{"user_id": 1, "deadline_ms": 0, "scheduling": 1}`, CodeInvalid, "deadline_ms"},
		{"SchedulingNumber", `{"user_id": 1, "scheduling": 1}`, CodeInvalid, "scheduling must be the name of a scheduling mode"},
		{"TraceObject", `{"user_id": 1, "trace": {"a": []}}`, CodeInvalid, "trace must be true or false"},
		{"TraceText", `{"user_id": 1, "trace": "true"}`, CodeInvalid, "trace must be true or false"},
		{"SchedulingBeforeTrace", `{"user_id": 1, "trace": 1, "scheduling": 1}`, CodeInvalid, "scheduling"},
		{"NowText", `{"user_id": 1, "now": "noon"}`, CodeInvalid, `now must be a date such as "2026-03-01T12:00:00Z", or seconds since 1970, before the year 2200, got "noon"`},
		{"NowOfAnotherType", `{"user_id": 1, "now": [1]}`, CodeInvalid, "got an array"},
		{"NowInMilliseconds", `{"user_id": 1, "now": 1772366400000}`, CodeInvalid, "seconds since 1970"},
		{"NowIsNaN", `{"user_id": 1, "now": "NaN"}`, CodeInvalid, "now must be"},
		{"SchedulingEmpty", `{"user_id": 1, "scheduling": ""}`, CodeInvalid, "scheduling must be the name of a scheduling mode"},
		{"DeadlineString", `{"user_id": 1, "deadline_ms": "5"}`, CodeInvalid, "deadline_ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse([]byte(tc.doc), reg)
			var refused *Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tc.code, refused.Code)
			assert.Contains(t, refused.Detail, tc.detail)
			assert.Less(t, len(refused.Detail), 300)
			assert.NoError(t, uuid.Validate(refused.RequestID), "generated")
			assert.Equal(t, tc.code+": "+refused.Detail, err.Error())
		})
	}
}

// An error quotes 200 bytes of the input, whatever is wrong in megabytes of it.
func TestErrorsQuoteLittle(t *testing.T) {
	reg, long := builtin(t), strings.Repeat("é", 1<<20)
	for _, doc := range []string{
		`{"user_id": "` + long + `"}`,
		`{"user_id": 1, "param_overrides": {"` + long + `": 1}}`,
		`{"user_id": 1, "param_overrides": {"weight": "` + long + `"}}`,
		`{"user_id": 1, "plan": ["` + long + `"]}`,
		`{"user_id": 1, "deadline_ms": "` + long + `"}`,
		`{"user_id": 1, "param_overrides": "` + long + `"}`,
		long, `{"user_id": 1` + strings.Repeat("0", 1<<20) + `}`, `{"user_id": 1, ` + long,
	} {
		_, err := Parse([]byte(doc), reg)
		var refused *Error
		require.ErrorAs(t, err, &refused)
		assert.Less(t, len(refused.Detail), 350)
		if strings.Contains(refused.Detail, "é") && len(refused.Detail) > 200 {
			assert.Contains(t, refused.Detail, strings.Repeat("é", 100)+`…" (2097152 bytes)`)
		}
	}
}

func TestParseRequestID(t *testing.T) {
	reg := builtin(t)
	for doc, want := range map[string]string{
		`{"user_id": 1, "request_id": "r1"}`:                    "r1",
		`{"user_id": 1, "request_id": ""}`:                      "",
		`{"user_id": 1, "request_id": "\u00e9\n"}`:              "é\n",
		`{"user_id": 1, "request_id": 5, "request_id": "last"}`: "last",
	} {
		req, err := Parse([]byte(doc), reg)
		require.NoError(t, err, doc)
		assert.Equal(t, want, req.ID, doc)
	}
	seen := make(map[string]bool)
	for _, doc := range []string{
		`{"user_id": 1}`, `{"user_id": 1, "request_id": null}`, `{"user_id": 1, "request_id": 7}`, `{"user_id": 1, "request_id": {}}`,
	} {
		req, err := Parse([]byte(doc), reg)
		require.NoError(t, err, doc)
		assert.NoError(t, uuid.Validate(req.ID), doc)
		seen[req.ID] = true
	}
	assert.Len(t, seen, 4, "each generated id is new")
}

func TestParseOptionalFields(t *testing.T) {
	reg := builtin(t)
	req, err := Parse([]byte(`{"user_id": 1, "plan": "diamond", "deadline_ms": 250, "scheduling": "inline_all", "trace": true, "param_overrides":
		{"weight": "overridden below", "blocklist_regex": "^US", "esr_cutoff": 3, "weight": -0.25}}`), reg)
	require.NoError(t, err)
	assert.Equal(t, "diamond", req.Plan)
	assert.Equal(t, 250*time.Millisecond, req.Timeout)
	assert.Equal(t, plan.InlineAll, req.Scheduling)
	assert.True(t, req.Trace)
	weight, ok := req.parsed.Float(4)
	assert.True(t, ok)
	assert.Equal(t, -0.25, weight)
	cutoff, ok := req.parsed.Float(3)
	assert.True(t, ok)
	assert.Equal(t, 3.0, cutoff)
	regex, ok := req.parsed.String(2)
	assert.True(t, ok)
	assert.Equal(t, "^US", regex)
	_, ok = req.parsed.Float(1)
	assert.False(t, ok, "unset")

	req, err = Parse([]byte(`{"user_id": 1, "plan": null, "deadline_ms": null, "param_overrides": {"blocklist_regex": null}}`), reg)
	require.NoError(t, err)
	assert.Empty(t, req.Plan)
	assert.Zero(t, req.Timeout)
	_, ok = req.parsed.String(2)
	assert.False(t, ok, "an explicit null is the same as unset")

	req, err = Parse([]byte(`{"user_id": 1, "deadline_ms": 18446744073709551615, "param_overrides": null}`), reg)
	require.NoError(t, err)
	assert.Greater(t, req.Timeout, 200*365*24*time.Hour, "clamped, not wrapped")
}

func TestParseNow(t *testing.T) {
	reg := builtin(t)
	for value, want := range map[string]time.Time{
		`"2026-03-01T12:00:00Z"`: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC), `"2026-03-01T13:00:00.25+01:00"`: time.Date(2026, time.March, 1, 12, 0, 0, 25e7, time.UTC),
		`1772366400`: time.Unix(1772366400, 0).UTC(), `-0.5`: time.Unix(0, -5e8).UTC(), `0`: time.Unix(0, 0).UTC(), `"1772366400.000001"`: time.Unix(1772366400, 1000).UTC(),
		`null`: {},
	} {
		req, err := Parse([]byte(`{"user_id": 1, "now": `+value+`}`), reg)
		require.NoError(t, err, value)
		assert.Equal(t, want, req.Now, value)
		assert.Equal(t, value != "null", GrantNow.AskedBy(&req), value)
	}
}

func TestParseParamTypesOfOtherRegistries(t *testing.T) {
	reg := registrytest.Tables{Keys: registrytest.ID, Endpoints: registrytest.Redis,
		Params: registrytest.Param(1, "count", "int") + registrytest.Param(2, "flag", "bool", registrytest.Nullable)}.Load()
	for value, ok := range map[string]bool{`5`: true, `5.0`: true, `-3e2`: true, `5.5`: false, `"5"`: false, `true`: false, `null`: false} {
		req, err := Parse([]byte(`{"user_id": 1, "param_overrides": {"count": `+value+`}}`), reg)
		assert.Equal(t, ok, err == nil, value)
		if _, set := req.parsed.Float(1); ok {
			assert.True(t, set, value)
		}
	}
	for value, ok := range map[string]bool{`true`: true, `null`: true, `1`: false, `"true"`: false} {
		_, err := Parse([]byte(`{"user_id": 1, "param_overrides": {"flag": `+value+`}}`), reg)
		assert.Equal(t, ok, err == nil, value)
	}
}

func TestParseIsLinearInOverrides(t *testing.T) {
	// There are a quarter of a million duplicates. Quadratic work would not end in a test's
	// time.
	doc := `{"user_id": 1, "param_overrides": {` + strings.Repeat(`"weight": 1, `, 250_000) + `"weight": 2}}`
	req, err := Parse([]byte(doc), builtin(t))
	require.NoError(t, err)
	weight, _ := req.parsed.Float(4)
	assert.Equal(t, 2.0, weight)
}

// FuzzParse checks that a document is refused with an answer, or is a request that keeps its
// promises.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		`{"user_id": 1}`, `{"user_id": "007", "request_id": "x", "plan": "p", "deadline_ms": 5}`, `{"user_id": 1, "now": "2026-03-01T12:00:00Z"}`, `{"user_id": 1, "now": 1.5}`,
		`{"user_id": 1, "param_overrides": {"weight": 0.5, "blocklist_regex": null}}`, `[`, `"\ud800"`, `1e999`, ``,
		`{"user_id": 1, "context": {"country": "DE", "hour": 18, "seen": [9007199254740993, -1], "langs": ["de", ""], "logged_in": true, "lat": -0.0}}`,
		`{"user_id": 1, "context": {"seen": [1e3, null]}}`, `{"user_id": 1, "context": {"hour": 1e300}}`, `{"user_id": 1, "param_overrides": {"seen": []}}`,
	} {
		f.Add([]byte(doc))
	}
	reg := typedParams()
	f.Fuzz(func(t *testing.T, doc []byte) {
		req, err := Parse(doc, reg)
		if err == nil {
			assert.True(t, 1 <= req.UserID && req.UserID <= UserIDMax)
			assert.GreaterOrEqual(t, req.Timeout, time.Duration(0))
			for _, p := range reg.Params() {
				if w, ok := req.parsed.Float(p.ID); ok {
					assert.False(t, math.IsInf(w, 0) || math.IsNaN(w))
				}
				if list, ok := req.parsed.IntList(p.ID); ok {
					assert.LessOrEqual(t, len(list), registry.ListItemsMax)
				}
				checkType(t, &req.parsed, p)
			}
			return
		}
		var refused *Error
		require.ErrorAs(t, err, &refused)
		line := AppendFailure(nil, &Failure{RequestID: refused.RequestID, Error: refused.Code, Detail: refused.Detail})
		assert.True(t, json.Valid(line), "%s", line)
		assert.Equal(t, 1, strings.Count(string(line), "\n"))
	})
}

func BenchmarkParse(b *testing.B) {
	reg := builtin(b)
	doc := []byte(`{"user_id": 123456, "request_id": "0b1f8f8e-4d0c-4f66-9e8e-1d0c4f669e8e", "param_overrides": {"weight": 0.25}}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(doc, reg); err != nil {
			b.Fatal(err)
		}
	}
}

// Parse checks one document about which nothing else is known.
func Parse(doc []byte, reg *registry.Registry) (Request, error) {
	return NewParser(reg).Parse(doc, Given{})
}
