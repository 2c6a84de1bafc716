package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// benchmarkArgs have redis-benchmark send HGETALLs on four connections, 64 in each's pipeline: what
// a plan's reads look like to the server, with nobody computing. A million of them take about a second.
var benchmarkArgs = [...]string{"-P", "64", "-c", "4", "-n", "1000000", "--csv", "HGETALL", "user:1"}

// RedisBenchmark returns the HGETALLs per second that the program redis-benchmark reaches on the
// server at addr.
func RedisBenchmark(ctx context.Context, program, addr string) (float64, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, program, append([]string{"-h", host, "-p", port}, benchmarkArgs[:]...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	rate, err := parseBenchmark(string(out))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return rate, nil
}

var benchmarkRate = regexp.MustCompile(`(?m)^"HGETALL[^"]*","([\d.]+)"`)

// parseBenchmark reads the rate from the lines of --csv, whose second column it is.
func parseBenchmark(csv string) (float64, error) {
	if m := benchmarkRate.FindStringSubmatch(csv); m != nil {
		if rate, err := strconv.ParseFloat(m[1], 64); err == nil && rate > 0 {
			return rate, nil
		}
	}
	return 0, errors.New("no result")
}

// RedisBenchmarkVersion returns the program with its version, and what it is made to run:
// "redis-benchmark 7.0.15 -P 64 -c 4 HGETALL". It comes from the package of redis-server, so the two
// versions should agree.
func RedisBenchmarkVersion(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(out)), " (")
	return name + " -P 64 -c 4 HGETALL", nil
}
