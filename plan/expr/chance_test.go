package expr

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// random spreads rows evenly: the chi-square statistic of 64 bins stays below 120. One seed in
// 30,000 exceeds that value.
func TestRandomIsEven(t *testing.T) {
	const rows, bins = 1 << 16, 64
	ids := make([]int64, rows)
	for i := range ids {
		ids[i] = int64(i)
	}
	in := rowset.Dense(rowset.NewBatch(ids))
	for seed := range 20 {
		e := mustExprOf(t, typedLanguage, fmt.Sprintf(`{"op":"random","seed":%s}`, num(fmt.Sprint(seed))))
		values, err := e.Values(nil, nil, in, nil)
		require.NoError(t, err)
		var counts [bins]float64
		for _, v := range values.Values {
			require.True(t, 0 <= v && v < 1)
			counts[int(v*bins)]++
		}
		chi := 0.0
		for _, n := range counts {
			chi += (n - rows/bins) * (n - rows/bins) / (rows / bins)
		}
		assert.Less(t, chi, 120.0, "seed %d", seed)
	}
}

// The distances come from published test vectors, or follow from the radius.
func TestGeoDistance(t *testing.T) {
	const quarter = math.Pi / 2 * 6371008.8
	for _, c := range []struct {
		name                   string
		lat1, lon1, lat2, lon2 float64
		want, within           float64 // in meters
	}{
		{"the same place", 52.5, 13.4, 52.5, 13.4, 0, 0},
		{"pole to equator", 90, 0, 0, 77, quarter, 1e-6},
		{"antipodes", 0, 0, 0, 180, 2 * quarter, 1e-6},
		{"antipodes, oblique", 30, 20, -30, -160, 2 * quarter, 1},
		{"over the date line", 0, 179.5, 0, -179.5, quarter / 90, 1e-6},
		{"Nashville to Los Angeles: Rosetta Code has 2887.2599506 km for a radius of 6372.8", 36.12, -86.67, 33.94, -118.4, 2887259.9506 * 6371008.8 / 6372800, 1e-3},
		{"one meter", 52.5, 13.4, 52.5 + 1/(quarter/90), 13.4, 1, 1e-6},
		{"a longitude too many", 10, 370, 10, 10, 0, 1e-6},
	} {
		assert.InDelta(t, c.want, geoDistance(c.lat1, c.lon1, c.lat2, c.lon2), c.within, c.name)
	}
	for _, c := range [][4]float64{{91, 0, 0, 0}, {0, 0, -90.5, 0}, {math.NaN(), 0, 0, 0}, {0, math.Inf(1), 0, 0}, {0, 0, 0, math.NaN()}} {
		assert.True(t, math.IsNaN(geoDistance(c[0], c[1], c[2], c[3])), c)
	}
}

func TestClocks(t *testing.T) {
	at := func(text string) float64 {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return float64(when.Unix())
	}
	for _, c := range []struct {
		time, zone string
		hour, day  float64
	}{
		{"2026-11-23T00:00:00Z", "UTC", 0, 1},
		{"2026-11-23T00:00:00Z", "America/New_York", 19, 0}, // it is Sunday there
		{"2026-03-29T00:59:59Z", "Europe/Berlin", 1, 0},
		{"2026-03-29T01:00:00Z", "Europe/Berlin", 3, 0}, // the hour that summer time skips
		{"2026-07-01T23:30:00Z", "Asia/Kolkata", 5, 4},
		{"1969-12-31T23:59:59Z", "UTC", 23, 3},
	} {
		for name, want := range map[string]float64{"hour_of": c.hour, "day_of_week": c.day} {
			e := mustExprOf(t, typedLanguage, fmt.Sprintf(`{"op":%q,"x":%s,"zone":%s}`, name, num(fmt.Sprintf("%f", at(c.time)+0.75)), str(c.zone)))
			got, ok := e.Value(nil)
			assert.True(t, ok)
			assert.Equal(t, want, got, "%s of %s in %s", name, c.time, c.zone)
		}
	}
	for zone, want := range map[string]string{
		`{"op":"const_string","value":"Mars/Olympus"}`: `zone: "Mars/Olympus" is not a time zone of the IANA database, such as "Europe/Berlin"`,
		`{"op":"const_string","value":"Local"}`:        `zone: "Local" is not a time zone of the IANA database, such as "Europe/Berlin"`,
		`{"op":"const_string","value":"../passwd"}`:    `zone: "../passwd" is not a time zone of the IANA database, such as "Europe/Berlin"`,
		`{"op":"param_ref","param_id":2}`: `zone: want a literal such as "Europe/Berlin", have parameter p2 of type string; ` +
			`for a zone of the request, add its offset in seconds to x`,
	} {
		_, err := typedLanguage.ParseExpr(parseJSON(t, `{"op":"hour_of","x":{"op":"now"},"zone":`+zone+`}`))
		assert.EqualError(t, err, want)
	}
}
