package served

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/scheduler"
)

// waitingBytes bounds what waits to become lines, and chunkBytes what is written at once, except for a longer line.
const (
	waitingBytes = 64 << 20
	chunkBytes   = 64 << 10
)

// ErrBehind: answers come faster than their lines can be written.
var ErrBehind = errors.New("lines are written too slowly")

// Config says where lines go. The zero value of each field but To works. Immutable.
type Config struct {
	To io.Writer // takes one or more whole lines at a time, on one goroutine; it may wait
	// Users is how many users in a hundred have lines, by Salt. Zero means all.
	Users float64
	Keys  *Keys // of users; nil: lines have their ids
	// Nodes appends what the nodes of a run contributed, as answers say it. Nil: nothing.
	Nodes func([]request.NodeCompleteness, *scheduler.Result) []request.NodeCompleteness
	// Report is called with the error when lines begin to get lost, and with nil when they are written again. It must not
	// wait. It reports whether it has said so, and is called again otherwise. Any goroutine calls it.
	Report func(error) bool
}

// Salt is what users are hashed with to choose those with lines.
const Salt = "served_log"

// Log turns records into lines. Any goroutine.
type Log struct {
	config  Config
	users   plan.Alias // side B has lines
	queue   *fileio.Queue[*Record]
	records sync.Pool

	written, dropped, failed atomic.Uint64
	made                     atomic.Uint64 // lines in buffer, of which nobody has said what became of them
	losses                   fileio.Losses

	// The goroutine of queue has the rest.
	encoder encoder
	buffer  []byte
	nodes   []request.NodeCompleteness // of the last line
}

// Record is what a line is made of. It belongs to its request, and then to the Log.
type Record struct {
	scheduler.Served
	Generation     *generation.Generation
	Graph          *plan.Graph
	Alias          *plan.Alias // nil: the request named a plan
	Side           string      // of Alias
	Result         *scheduler.Result
	RequestID      string
	ID             [16]byte // the engine's
	UserID         int64
	UserIDText     string
	At             time.Time
	Elapsed, Delay time.Duration
	Traffic        string
	Undelivered    bool
}

// New returns a log. Close ends it.
func New(c Config) *Log {
	if c.Users == 0 {
		c.Users = 100
	}
	l := &Log{config: c, users: plan.Alias{B: plan.SideB, BShare: c.Users, Salt: Salt}}
	l.records.New = func() any { return new(Record) }
	l.losses.To = c.Report
	l.queue = fileio.NewGatheringQueue(waitingBytes, l.take, l.flush)
	return l
}

// Wants reports whether the answer to a request has a line.
func (l *Log) Wants(r *request.Request) bool {
	if r.NoConsent || l.config.Users >= 100 {
		return !r.NoConsent
	}
	var room [rowset.IDBytesMax]byte
	side, _ := l.users.Side(request.AppendUser(room[:0], r))
	return side == plan.SideB
}

// Record returns an empty record, for Put or Drop.
func (l *Log) Record() *Record { return l.records.Get().(*Record) }

// Drop takes back a record of which there will be no line.
func (l *Log) Drop(r *Record) {
	r.Release()
	*r = Record{Served: r.Served}
	l.records.Put(r)
}

// Put makes a line of a record. If too much waits, it drops and counts the record. It never waits.
func (l *Log) Put(r *Record) {
	size := recordBytes
	if !r.Copied {
		size += sizeOf(r.Rows)
	}
	for _, rows := range r.Outputs {
		size += sizeOf(rows)
	}
	if !l.queue.Add(size, func() *Record { return r }) {
		l.Drop(r)
		l.lose(&l.dropped, 1, ErrBehind)
	}
}

// recordBytes is about how many bytes a record holds with its result, without rows.
const recordBytes = 1024

// sizeOf returns about how many bytes rows hold.
func sizeOf(rows rowset.RowSet) int {
	if rows.Batch == nil {
		return 0
	}
	return 8 * rows.Batch.Len() * (1 + rows.Batch.Count())
}

// lose counts lines that are lost.
func (l *Log) lose(count *atomic.Uint64, n uint64, err error) {
	count.Add(n)
	l.losses.Report(err)
}

// take makes the line of a record.
func (l *Log) take(r *Record) {
	defer func() {
		if recovered := recover(); recovered != nil {
			l.lose(&l.failed, 1, fmt.Errorf("a line has made the log panic: %v", recovered))
		}
	}()
	before := len(l.buffer)
	line := l.line(l.buffer, r)
	l.Drop(r)
	if l.buffer = line; len(line) > before {
		l.made.Add(1)
	}
	if len(l.buffer) >= chunkBytes {
		l.flush()
	}
}

// line appends the line of a record.
func (l *Log) line(dst []byte, r *Record) []byte {
	if l.config.Nodes != nil {
		l.nodes = l.config.Nodes(l.nodes[:0], r.Result)
	}
	return l.encoder.append(dst, r, l.nodes, l.config.Users/100, l.config.Keys)
}

// flush writes the lines that were made.
func (l *Log) flush() {
	if len(l.buffer) == 0 {
		return
	}
	n, err := l.config.To.Write(l.buffer)
	made := l.made.Swap(0) // 0: Close has given them up
	written := min(made, uint64(bytes.Count(l.buffer[:n], []byte{'\n'})))
	l.written.Add(written)
	switch {
	case err != nil || written < made:
		l.lose(&l.failed, made-written, cmp.Or(err, io.ErrShortWrite))
	default:
		l.losses.Report(nil)
	}
	if l.buffer = l.buffer[:0]; cap(l.buffer) > 16*chunkBytes {
		l.buffer = nil
	}
}

// Counts are what became of the answers that were to have a line. A copy; any goroutine.
type Counts struct {
	Written uint64 // lines
	Dropped uint64 // lines that were not made, since too much waited
	Failed  uint64 // lines that were not written
}

// Counts says what became of the lines so far.
func (l *Log) Counts() Counts { return Counts{l.written.Load(), l.dropped.Load(), l.failed.Load()} }

// Close writes what waits. If ctx ends first, what waits is lost and counted, and the error is the cause of ctx. It does not close To.
func (l *Log) Close(ctx context.Context) error {
	before := l.queue.Dropped()
	err := l.queue.Close(ctx)
	if dropped := l.queue.Dropped() - before; dropped > 0 {
		l.lose(&l.dropped, dropped, err)
	}
	if err != nil { // The lines that To has not taken may be there or not.
		if made := l.made.Swap(0); made > 0 {
			l.lose(&l.failed, made, err)
		}
	}
	return err
}
