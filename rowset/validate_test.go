package rowset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

func TestValidateNamesWhatIsBroken(t *testing.T) {
	good := func() rowset.RowSet {
		tags := rowset.NewSetBuilder(5201, 3)
		for _, text := range []string{"a,b", "", "a"} {
			tags.AppendText([]byte(text))
		}
		sets := tags.Column().(*rowset.SetColumn)
		sets.Dict.Offsets, sets.Codes = sets.Dict.Offsets[:3], []int32{0, 1, rowset.NullCode}
		return rowset.RowSet{Batch: rowset.NewBatch([]int64{1, 2, 3},
			&rowset.FloatColumn{Key: 1001, Values: make([]float64, 3)},
			&rowset.FloatColumn{Key: 2001, Values: make([]float64, 3)},
			stringColumn(3001, "a", "-", "b"),
			stringColumn(3002, "-", "-", "-"),
			&rowset.IntColumn{Key: 5001, Values: make([]int64, 3), Valid: rowset.NewBitmap(3)},
			&rowset.BoolColumn{Key: 5101, Values: rowset.NewBitmap(3)},
			sets,
		),
			Rows: []int32{2, 0}, N: 2}
	}
	require.NoError(t, good().Validate())
	require.NoError(t, rowset.RowSet{}.Validate())
	for want, breakIt := range map[string]func(rs *rowset.RowSet){
		"2 active rows without a batch":                  func(rs *rowset.RowSet) { rs.Batch = nil },
		"N is 3, but 2 rows are listed":                  func(rs *rowset.RowSet) { rs.N = 3 },
		"4 active rows of 3":                             func(rs *rowset.RowSet) { rs.Rows, rs.N = nil, 4 },
		"-1 active rows of 3":                            func(rs *rowset.RowSet) { rs.Rows, rs.N = nil, -1 },
		"Rows[1] is 3, the batch has 3 rows":             func(rs *rowset.RowSet) { rs.Rows[1] = 3 },
		"Rows[0] is -1":                                  func(rs *rowset.RowSet) { rs.Rows[0] = -1 },
		"Rows[1] lists row 2 again":                      func(rs *rowset.RowSet) { rs.Rows[1] = 2 },
		"float column 1001 has 2 values":                 func(rs *rowset.RowSet) { rs.Batch.Float(1001).Values = make([]float64, 2) },
		"float column 2001 has 0 words":                  func(rs *rowset.RowSet) { rs.Batch.Float(2001).Valid = rowset.Bitmap{} },
		"float column 1001 is out of order":              func(rs *rowset.RowSet) { rs.Batch.Float(2001).Key = 1001 },
		"string column 3000 is out of order":             func(rs *rowset.RowSet) { rs.Batch.String(3002).Key = 3000 },
		"column 2001 is there with two types":            func(rs *rowset.RowSet) { rs.Batch.String(3001).Key = 2001 },
		"string column 3001 has 1 values":                func(rs *rowset.RowSet) { rs.Batch.String(3001).Places = []int32{0} },
		"string column 3002 has no dictionary":           func(rs *rowset.RowSet) { rs.Batch.String(3002).Dict = nil },
		"string column 3001, row 1: code 2 of 2":         func(rs *rowset.RowSet) { rs.Batch.String(3001).Places[1] = 2 },
		"string column 3001, row 1: code -2":             func(rs *rowset.RowSet) { rs.Batch.String(3001).Places[1] = -2 },
		`string column 3001 has "a" twice in its dictio`: func(rs *rowset.RowSet) { rs.Batch.String(3001).Dict.Values[1] = "a" },
		"int column 5001 has 2 words of validity":        func(rs *rowset.RowSet) { rs.Batch.Int(5001).Valid = rowset.NewBitmap(65) },
		"int column 5001 has 2 values":                   func(rs *rowset.RowSet) { rs.Batch.Int(5001).Values = make([]int64, 2) },
		"bool column 5101 has 0 words of values":         func(rs *rowset.RowSet) { rs.Batch.Bool(5101).Values = nil },
		"string_set column 5201 has no dictionary":       func(rs *rowset.RowSet) { rs.Batch.Set(5201).Dict = nil },
		"string_set column 5201, row 2: code 2 of 2":     func(rs *rowset.RowSet) { rs.Batch.Set(5201).Codes[2] = 2 },
		"string_set column 5201 has a set outside":       func(rs *rowset.RowSet) { rs.Batch.Set(5201).Dict.Offsets[2] = 9 },
		"5201 has a set outside of":                      func(rs *rowset.RowSet) { rs.Batch.Set(5201).Dict.Members[0] = 7 },
		"a set (0) whose members do not ascend":          func(rs *rowset.RowSet) { rs.Batch.Set(5201).Dict.Members[1] = 0 },
		`xx…" (1000 bytes) twice`: func(rs *rowset.RowSet) {
			rs.Batch.String(3001).Dict.Values = slices.Repeat([]string{strings.Repeat("x", 1000)}, 2)
		},
	} {
		t.Run(want, func(t *testing.T) {
			rs := good()
			breakIt(&rs)
			assert.ErrorContains(t, rs.Validate(), want)
		})
	}
}
