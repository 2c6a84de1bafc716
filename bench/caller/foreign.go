package caller

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Foreign is a client that others wrote, and how it is called. Immutable.
type Foreign struct {
	Name    string // of the caller: the program's, and what is special about it
	Program string // the executable
	Front   string // that it calls: RESP or HTTP

	// args returns its arguments. It may write files that they name.
	args  func(c *Call) ([]string, error)
	parse func(c *Call, out string) (Seen, error)
}

// Call is one use of a foreign client. Immutable.
type Call struct {
	Addr     string // of the front, "host:port"
	Plan     string
	User     int64
	InFlight int
	Duration time.Duration // programs that count seconds round it up
	Requests int64         // for a program that knows no duration
	Folder   string        // for its files
}

// Seen is what a foreign client tells of its load. Immutable.
type Seen struct {
	Requests  int64
	PerSecond float64
	P50, P99  float64 // µs; P99 is 0 if it does not tell
}

// Foreigners returns the foreign clients that are known, installed or not.
func Foreigners() []Foreign {
	return []Foreign{
		{Name: "redis-benchmark", Program: "redis-benchmark", Front: RESP, args: redisBenchmarkArgs(1), parse: parseRedisBenchmark},
		{Name: "redis-benchmark -P 16", Program: "redis-benchmark", Front: RESP, args: redisBenchmarkArgs(16), parse: parseRedisBenchmark},
		{Name: "wrk", Program: "wrk", Front: HTTP, args: wrkArgs, parse: parseWrk},
		{Name: "ab", Program: "ab", Front: HTTP, args: abArgs, parse: parseAB},
	}
}

// Run runs the program once. The error quotes what it said. A request that failed is an error.
func (f *Foreign) Run(ctx context.Context, c *Call) (Seen, error) {
	args, err := f.args(c)
	if err != nil {
		return Seen{}, err
	}
	out, err := exec.CommandContext(ctx, f.Program, args...).CombinedOutput()
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w: %s", f.Program, err, out)
	}
	seen, err := f.parse(c, string(out))
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w: %s", f.Program, err, out)
	}
	return seen, nil
}

// redisBenchmarkArgs returns how redis-benchmark is called, with so many commands in the pipeline of a connection.
func redisBenchmarkArgs(pipeline int) func(*Call) ([]string, error) {
	return func(c *Call) ([]string, error) {
		host, port, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return nil, err
		}
		deep := min(pipeline, c.InFlight)
		return []string{
			"-h", host, "-p", port, "-n", strconv.FormatInt(c.Requests, 10), "-c", strconv.Itoa(c.InFlight / deep), "-P", strconv.Itoa(deep),
			"-e", "--csv", "RANK", c.Plan, strconv.FormatInt(c.User, 10),
		}, nil
	}
}

// parseRedisBenchmark reads the lines of --csv: a head with the names of the columns, and a line of figures.
func parseRedisBenchmark(c *Call, out string) (Seen, error) {
	if strings.Contains(out, "Error from server") {
		return Seen{}, errors.New("a request failed")
	}
	_, table, _ := strings.Cut(out, `"test"`) // before it come warnings
	rows, err := csv.NewReader(strings.NewReader(`"test"` + table)).ReadAll()
	if err != nil || len(rows) < 2 {
		return Seen{}, errors.New("no table of figures")
	}
	column := func(name string) float64 {
		for i, head := range rows[0] {
			if head == name {
				return number(rows[1][i])
			}
		}
		return 0
	}
	const ms = 1000 // µs
	seen := Seen{Requests: c.Requests, PerSecond: column("rps"), P50: column("p50_latency_ms") * ms, P99: column("p99_latency_ms") * ms}
	return seen, seen.check()
}

// body is the request that HTTP clients post.
func (c *Call) body() string { return fmt.Sprintf(`{"user_id": %d}`, c.User) }

func (c *Call) url() string { return "http://" + c.Addr + "/v1/rank/" + c.Plan }

// seconds returns the duration in whole seconds, rounded up.
func (c *Call) seconds() int { return int(math.Ceil(c.Duration.Seconds())) }

func wrkArgs(c *Call) ([]string, error) {
	script := filepath.Join(c.Folder, "post.lua")
	text := fmt.Sprintf("wrk.method = \"POST\"\nwrk.body = '%s'\nwrk.headers[\"Content-Type\"] = \"application/json\"\n", c.body())
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{"-t", "1", "-c", strconv.Itoa(c.InFlight), "-d", fmt.Sprintf("%ds", c.seconds()), "--latency", "-s", script, c.url()}, nil
}

var (
	wrkRequests  = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkPerSecond = regexp.MustCompile(`(?m)^Requests/sec:\s*([\d.]+)`)
	wrkQuantile  = regexp.MustCompile(`(?m)^\s*(50|99)%\s*([\d.]+)(us|ms|s)\s*$`)
	wrkFailure   = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses|Socket errors): .*$`)
)

func parseWrk(_ *Call, out string) (Seen, error) {
	if failure := wrkFailure.FindString(out); failure != "" {
		return Seen{}, errors.New(strings.TrimSpace(failure))
	}
	var seen Seen
	if m := wrkRequests.FindStringSubmatch(out); m != nil {
		seen.Requests = int64(number(m[1]))
	}
	if m := wrkPerSecond.FindStringSubmatch(out); m != nil {
		seen.PerSecond = number(m[1])
	}
	for _, m := range wrkQuantile.FindAllStringSubmatch(out, -1) {
		us := number(m[2]) * map[string]float64{"us": 1, "ms": 1e3, "s": 1e6}[m[3]]
		if m[1] == "50" {
			seen.P50 = us
		} else {
			seen.P99 = us
		}
	}
	return seen, seen.check()
}

// abRequestsMax bounds the requests of ab, which wants a number beside the time. It keeps some bytes for each.
const abRequestsMax = 1_000_000

func abArgs(c *Call) ([]string, error) {
	body := filepath.Join(c.Folder, "body.json")
	if err := os.WriteFile(body, []byte(c.body()), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"-q", "-k", "-l", "-c", strconv.Itoa(c.InFlight), "-t", strconv.Itoa(c.seconds()), "-n", strconv.Itoa(abRequestsMax),
		"-p", body, "-T", "application/json", "-e", c.abQuantiles(), c.url(),
	}, nil
}

// abQuantiles is the file into which ab writes quantiles. Those that it prints are whole milliseconds.
func (c *Call) abQuantiles() string { return filepath.Join(c.Folder, "quantiles.csv") }

var (
	abRequests  = regexp.MustCompile(`(?m)^Complete requests:\s*(\d+)`)
	abPerSecond = regexp.MustCompile(`(?m)^Requests per second:\s*([\d.]+)`)
	abFailed    = regexp.MustCompile(`(?m)^(Failed requests:\s*[1-9]\d*|Non-2xx responses:.*)$`)
)

func parseAB(c *Call, out string) (Seen, error) {
	quantiles, err := os.ReadFile(c.abQuantiles())
	if err != nil {
		return Seen{}, err
	}
	return parseABWith(out, string(quantiles))
}

// parseABWith reads what ab has printed, and its file of quantiles.
func parseABWith(out, quantiles string) (Seen, error) {
	if failure := abFailed.FindString(out); failure != "" {
		return Seen{}, errors.New(failure)
	}
	var seen Seen
	if m := abRequests.FindStringSubmatch(out); m != nil {
		seen.Requests = int64(number(m[1]))
	}
	if m := abPerSecond.FindStringSubmatch(out); m != nil {
		seen.PerSecond = number(m[1])
	}
	const ms = 1000 // µs
	for line := range strings.Lines(quantiles) {
		percent, value, _ := strings.Cut(strings.TrimSpace(line), ",")
		switch percent {
		case "50":
			seen.P50 = number(value) * ms
		case "99":
			seen.P99 = number(value) * ms
		}
	}
	return seen, seen.check()
}

// number returns 0 for a text that is not a number.
func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// check returns an error if a figure is missing.
func (s *Seen) check() error {
	if s.Requests < 1 || !(s.PerSecond > 0) || !(s.P50 > 0) {
		return errors.New("figures are missing")
	}
	return nil
}
