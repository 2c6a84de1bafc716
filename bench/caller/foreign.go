package caller

import (
	"context"
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
	args func(c *Call) ([]string, error)
	says *patterns
	file string // of the folder, in which it tells more than it prints; empty: none
}

// patterns find what a program says. A figure is the first group, and the second one is the unit of a time: ms without it. Immutable.
type patterns struct {
	failure                       *regexp.Regexp
	requests, perSecond, p50, p99 *regexp.Regexp // requests may be nil: as many as the call has
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
		{Name: "redis-benchmark", Program: "redis-benchmark", Front: RESP, args: redisBenchmarkArgs(1), says: &redisBenchmarkSays},
		{Name: "redis-benchmark -P 16", Program: "redis-benchmark", Front: RESP, args: redisBenchmarkArgs(16), says: &redisBenchmarkSays},
		{Name: "wrk", Program: "wrk", Front: HTTP, args: wrkArgs, says: &wrkSays},
		{Name: "ab", Program: "ab", Front: HTTP, args: abArgs, says: &abSays, file: abQuantiles},
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
	var more []byte
	if f.file != "" {
		if more, err = os.ReadFile(filepath.Join(c.Folder, f.file)); err != nil {
			return Seen{}, err
		}
	}
	seen, err := f.says.find(c, string(out)+string(more))
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w: %s", f.Program, err, out)
	}
	return seen, nil
}

// find finds the figures. Only the p99 may be missing.
func (p *patterns) find(c *Call, out string) (Seen, error) {
	if failure := p.failure.FindString(out); failure != "" {
		return Seen{}, errors.New(strings.TrimSpace(failure))
	}
	scale := map[string]float64{"us": 1, "ms": 1e3, "s": 1e6, "": 1e3}
	figure := func(pattern *regexp.Regexp) (x, us float64) {
		m := pattern.FindStringSubmatch(out)
		if m == nil {
			return 0, 0
		}
		x, _ = strconv.ParseFloat(m[1], 64) // infinite, or 0, if it is not a number
		return x, x * scale[strings.Join(m[2:], "")]
	}
	seen := Seen{Requests: c.Requests}
	if p.requests != nil {
		n, _ := figure(p.requests)
		seen.Requests = int64(n)
	}
	seen.PerSecond, _ = figure(p.perSecond)
	_, seen.P50 = figure(p.p50)
	_, seen.P99 = figure(p.p99)
	if seen.Requests < 1 || !(seen.PerSecond > 0) || !(seen.P50 > 0) {
		return Seen{}, errors.New("figures are missing")
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

// redisBenchmarkSays reads the line of figures of --csv: the rate, the mean, the least, p50, p95, p99.
var redisBenchmarkSays = patterns{
	failure:   regexp.MustCompile(`(?m)^.*Error from server.*$`),
	perSecond: regexp.MustCompile(`(?m)^"RANK[^"]*","([\d.]+)"`),
	p50:       regexp.MustCompile(`(?m)^"RANK[^"]*"(?:,"[\d.]+"){3},"([\d.]+)"`),
	p99:       regexp.MustCompile(`(?m)^"RANK[^"]*"(?:,"[\d.]+"){5},"([\d.]+)"`),
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

var wrkSays = patterns{
	failure:   regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses|Socket errors): .*$`),
	requests:  regexp.MustCompile(`(?m)^\s*(\d+) requests in `),
	perSecond: regexp.MustCompile(`(?m)^Requests/sec:\s*([\d.]+)`),
	p50:       regexp.MustCompile(`(?m)^\s*50%\s*([\d.]+)(us|ms|s)\s*$`),
	p99:       regexp.MustCompile(`(?m)^\s*99%\s*([\d.]+)(us|ms|s)\s*$`),
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
		"-p", body, "-T", "application/json", "-e", filepath.Join(c.Folder, abQuantiles), c.url(),
	}, nil
}

// abQuantiles is the file into which ab writes quantiles. Those that it prints are whole milliseconds.
const abQuantiles = "quantiles.csv"

var abSays = patterns{
	failure:   regexp.MustCompile(`(?m)^(Failed requests:\s*[1-9]\d*|Non-2xx responses:.*)$`),
	requests:  regexp.MustCompile(`(?m)^Complete requests:\s*(\d+)`),
	perSecond: regexp.MustCompile(`(?m)^Requests per second:\s*([\d.]+)`),
	p50:       regexp.MustCompile(`(?m)^50,([\d.]+)`),
	p99:       regexp.MustCompile(`(?m)^99,([\d.]+)`),
}
