package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Resident returns the memory of the process that is in RAM, in bytes. It needs Linux's /proc.
func (r *Replica) Resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Pid()))
	if err != nil {
		return 0, err
	}
	kib, err := numberAfter(text, "VmRSS:")
	return kib << 10, err
}

// Descriptors returns the number of open file descriptors. It needs Linux's /proc.
func (r *Replica) Descriptors() (int, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.Pid()))
	return len(open), err
}

// Goroutines returns the number of goroutines, as reported by the admin port.
func (r *Replica) Goroutines(ctx context.Context) (int64, error) {
	text, err := r.get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	return numberAfter(text, "goroutine profile: total ")
}

// Heap returns the bytes of reachable heap objects. The server collects its garbage first.
func (r *Replica) Heap(ctx context.Context) (int64, error) {
	text, err := r.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return numberAfter(text, "# HeapAlloc = ")
}

// Metric returns the sum of the samples of a metric over its labels, from /metrics. Zero if there are none.
func (r *Replica) Metric(ctx context.Context, name string) (float64, error) {
	text, err := r.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return sumSamples(text, name)
}

// sumSamples adds up the samples of a metric in Prometheus's text format.
func sumSamples(text []byte, name string) (sum float64, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), name)
		if !found || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum += value
	}
	return sum, lines.Err()
}

// get reads a page of the admin port.
func (r *Replica) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Admin+path, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // so that the connection does not count at the next call
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s: %s: %s", r.Admin, path, response.Status, text)
	}
	return text, err
}

// numberAfter returns the first whole number behind a label.
func numberAfter(text []byte, label string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(label))
	fields := bytes.Fields(rest[:min(len(rest), 40)])
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("nothing says %q", label)
	}
	return strconv.ParseInt(string(fields[0]), 10, 64)
}
