package trace

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the fixtures anew")

// The fixtures are traces as the engines record them, with the times of the drawings in the original specification. Drawings are tested on them.
func TestFixtures(t *testing.T) {
	for name, build := range map[string]func() *Trace{
		"mixed_pipeline.reactor": mixedPipelineReactor,
		"mixed_pipeline.pool":    mixedPipelinePool,
		"parallel_sleep":         parallelSleep,
		"deadline":               deadline,
	} {
		t.Run(name, func(t *testing.T) {
			want := build()
			require.NoError(t, want.Check())
			var doc bytes.Buffer
			text, err := json.Marshal(want)
			require.NoError(t, err)
			require.NoError(t, json.Indent(&doc, text, "", " "))
			file := filepath.Join("testdata", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(file, append(doc.Bytes(), '\n'), 0o644))
			}
			stored, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(stored), doc.String()+"\n")
			read, err := Decode(stored)
			require.NoError(t, err)
			assert.Equal(t, want, read)
		})
	}
}

// us and ms make the instants of the fixtures.
func us(n int) time.Duration { return time.Duration(n) * time.Microsecond }
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// chain returns the nodes of a plan in which each node reads the one before.
func chain(ops ...string) []Node {
	nodes := make([]Node, len(ops))
	for i, op := range ops {
		nodes[i] = Node{ID: "n" + string(rune('0'+i)), Op: op, Inputs: []int{i - 1}}
		if i == 0 {
			nodes[i].Inputs = []int{}
		}
	}
	nodes[len(nodes)-1].Output = true
	return nodes
}

// built fills in what follows from the rest.
func built(t *Trace) *Trace {
	t.Version, t.TraceID, t.RequestID = Version, "0af7651916cd43dd8448eb211c80319c", "r1"
	if t.Timers == nil {
		t.Timers = []Timer{}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		n.Index, n.SpanID = i, int64(i)+1
		if n.Depth == 0 {
			n.Parent = -1
		}
		if n.Status == "" {
			n.Status = OK
		}
		if n.Ran() {
			n.Ready = t.ready(n)
		} else {
			n.Status, n.Track = Skipped, -1
		}
	}
	return t
}

// ran sets how a node ran.
func (n *Node) ran(place Place, track int, start, end time.Duration, in, out int) *Node {
	n.Place, n.Track, n.Start, n.End, n.RowsIn, n.RowsOut = place, track, start, end, in, out
	return n
}

func (n *Node) queued(d time.Duration) *Node { n.QueueDelay = &d; return n }

func (n *Node) awaits(a ...Await) { n.Awaits = a }

func (n *Node) fused(of, parent, depth int) *Node {
	n.Fused, n.Parent, n.Depth = of, parent, depth
	return n
}

func body(node int, start, end time.Duration) Slice {
	return Slice{Kind: NodeSlice, Node: node, Start: start, End: end}
}

func engine(start, end time.Duration) Slice {
	return Slice{Kind: EngineSlice, Node: -1, Start: start, End: end}
}

func commands(node, n, sent, received int, start, end time.Duration) Slice {
	return Slice{Kind: CallSlice, Node: node, Start: start, End: end, Commands: n, Sent: sent, Received: received}
}

func redisFlow(node, from, lane int, asked, sent, replied, resumed time.Duration) Flow {
	return Flow{RedisFlow, node, []Point{{Asked, from, asked}, {Sent, lane, sent}, {Replied, lane, replied}, {Resumed, from, resumed}}}
}

func offloadFlow(node, worker int, submitted, started, posted, resumed time.Duration) Flow {
	return Flow{OffloadFlow, node, []Point{{Submitted, 0, submitted}, {Started, worker, started}, {Posted, worker, posted}, {Resumed, 0, resumed}}}
}

// mixedPipelineReactor is the fourth example: two nodes wait for Redis, four compute, of which two are one job.
func mixedPipelineReactor() *Trace {
	nodes := chain("core::viewer", "core::follow", "core::vm", "core::filter", "core::sort", "core::take")
	nodes[0].ran(OnLoop, 0, us(40), us(10060), 0, 1).awaits(Await{ForRedis, us(52), us(10050), 1})
	nodes[1].ran(OnLoop, 0, us(10064), us(25080), 1, 100).awaits(
		Await{ForRedis, us(10080), us(18000), 1}, Await{ForRedis, us(18040), us(25020), 100})
	nodes[2].ran(OnPool, 1, us(25110), us(27110), 100, 100).queued(us(24)).fused(2, -1, 0)
	nodes[3].ran(OnPool, 1, us(27110), us(28300), 100, 60).fused(2, 2, 1)
	nodes[4].ran(OnPool, 2, us(28360), us(34000), 60, 60).queued(us(20))
	nodes[5].ran(Inline, 0, us(34041), us(34043), 60, 10)
	return built(&Trace{
		Plan: "mixed_pipeline", Engine: "reactor", Scheduling: "adaptive",
		Request: Request{Begun: us(31), Ended: us(34052)}, Nodes: nodes,
		Tracks: []Track{
			{Kind: LoopTrack, Name: "Loop", Slices: []Slice{
				engine(us(31), us(40)), body(0, us(40), us(52)), engine(us(52), us(53)),
				body(0, us(10050), us(10060)), engine(us(10060), us(10064)), body(1, us(10064), us(10080)), engine(us(10080), us(10081)),
				body(1, us(18000), us(18040)), body(1, us(25020), us(25080)), engine(us(25080), us(25090)),
				engine(us(28330), us(28342)), engine(us(34030), us(34041)), body(5, us(34041), us(34043)), engine(us(34043), us(34052)),
			}},
			{Kind: CPUTrack, Number: 0, Name: "CPU 0", Slices: []Slice{body(2, us(25110), us(27110)), body(3, us(27110), us(28300))}},
			{Kind: CPUTrack, Number: 1, Name: "CPU 1", Slices: []Slice{body(4, us(28360), us(34000))}},
			{Kind: RedisTrack, Endpoint: "ep_0001", Name: "ep_0001 #0", Slices: []Slice{
				commands(0, 1, 27, 31, us(52), us(10050)), commands(1, 1, 39, 812, us(10080), us(18000)), commands(1, 100, 2700, 3100, us(18040), us(25020)),
			}},
		},
		Flows: []Flow{
			redisFlow(0, 0, 3, us(52), us(52), us(10050), us(10050)),
			redisFlow(1, 0, 3, us(10080), us(10080), us(18000), us(18000)),
			redisFlow(1, 0, 3, us(18040), us(18040), us(25020), us(25020)),
			offloadFlow(2, 1, us(25086), us(25110), us(28300), us(28330)),
			offloadFlow(4, 2, us(28340), us(28360), us(34000), us(34030)),
		},
	})
}

// mixedPipelinePool is the same request on the two-pool engine: workers block.
func mixedPipelinePool() *Trace {
	nodes := chain("core::viewer", "core::follow", "core::vm", "core::filter", "core::sort", "core::take")
	nodes[0].ran(OnIOWorker, 1, us(60), us(10060), 0, 1).queued(us(20)).awaits(Await{ForRedis, us(70), us(10050), 1})
	nodes[1].ran(OnIOWorker, 2, us(10100), us(25080), 1, 100).queued(us(10)).awaits(
		Await{ForRedis, us(10120), us(18000), 1}, Await{ForRedis, us(18040), us(25020), 100})
	nodes[2].ran(OnPool, 3, us(25120), us(27120), 100, 100).queued(us(15))
	nodes[3].ran(OnPool, 3, us(27160), us(28350), 100, 60).queued(us(15))
	nodes[4].ran(OnPool, 4, us(28400), us(34000), 60, 60).queued(us(15))
	nodes[5].ran(OnPool, 3, us(34040), us(34042), 60, 10).queued(us(15))
	return built(&Trace{
		Plan: "mixed_pipeline", Engine: "pool", Request: Request{Begun: us(31), Ended: us(34060)}, Nodes: nodes,
		Tracks: []Track{
			{Kind: RequestTrack, Name: "Request", Slices: []Slice{
				engine(us(31), us(45)), engine(us(10080), us(10095)), engine(us(25095), us(25110)), engine(us(27135), us(27150)),
				engine(us(28370), us(28390)), engine(us(34015), us(34030)), engine(us(34050), us(34060)),
			}},
			{Kind: IOTrack, Number: 0, Name: "I/O 0", Slices: []Slice{body(0, us(60), us(70)), body(0, us(10050), us(10060))}},
			{Kind: IOTrack, Number: 1, Name: "I/O 1", Slices: []Slice{body(1, us(10100), us(10120)), body(1, us(18000), us(18040)), body(1, us(25020), us(25080))}},
			{Kind: CPUTrack, Number: 0, Name: "CPU 0", Slices: []Slice{body(2, us(25120), us(27120)), body(3, us(27160), us(28350)), body(5, us(34040), us(34042))}},
			{Kind: CPUTrack, Number: 1, Name: "CPU 1", Slices: []Slice{body(4, us(28400), us(34000))}},
			{Kind: RedisTrack, Endpoint: "ep_0001", Name: "ep_0001 #0", Slices: []Slice{
				commands(0, 1, 27, 31, us(71), us(10048)), commands(1, 1, 39, 812, us(10121), us(17999)), commands(1, 100, 2700, 3100, us(18041), us(25019)),
			}},
		},
		Flows: []Flow{
			offloadFlow(0, 1, us(40), us(60), us(10060), us(10080)),
			redisFlow(0, 1, 5, us(70), us(71), us(10048), us(10050)),
			offloadFlow(1, 2, us(10090), us(10100), us(25080), us(25095)),
			redisFlow(1, 2, 5, us(10120), us(10121), us(17999), us(18000)),
			redisFlow(1, 2, 5, us(18040), us(18041), us(25019), us(25020)),
			offloadFlow(2, 3, us(25105), us(25120), us(27120), us(27135)),
			offloadFlow(3, 3, us(27145), us(27160), us(28350), us(28370)),
			offloadFlow(4, 4, us(28385), us(28400), us(34000), us(34015)),
			offloadFlow(5, 3, us(34025), us(34040), us(34042), us(34050)),
		},
	})
}

// parallelSleep has two sleeps side by side, two replies in flight on one connection, and a wait for the loop.
func parallelSleep() *Trace {
	nodes := []Node{
		{ID: "viewer", Op: "core::viewer", Inputs: []int{}},
		{ID: "sleep_a", Op: "test::sleep", Inputs: []int{0}},
		{ID: "sleep_b", Op: "test::sleep", Inputs: []int{0}},
		{ID: "media_a", Op: "core::media", Inputs: []int{1}},
		{ID: "media_b", Op: "core::media", Inputs: []int{2}},
		{ID: "join", Op: "core::concat", Inputs: []int{3, 4}, Output: true},
	}
	nodes[0].ran(OnLoop, 0, us(30), us(2010), 0, 1).awaits(Await{ForRedis, us(40), us(2000), 1})
	nodes[1].ran(OnLoop, 0, us(2012), us(22020), 1, 1).awaits(Await{ForTimer, us(2014), us(22016), 0})
	nodes[2].ran(OnLoop, 0, us(2016), us(27024), 1, 1).awaits(Await{ForTimer, us(2018), us(27020), 0})
	nodes[3].ran(OnLoop, 0, us(22024), us(29010), 1, 40).awaits(Await{ForRedis, us(22040), us(29000), 1})
	nodes[4].ran(OnLoop, 0, us(27028), us(30020), 1, 40).awaits(Await{ForRedis, us(27044), us(30000), 1})
	nodes[5].ran(Inline, 0, us(30024), us(30040), 80, 80)
	return built(&Trace{
		Plan: "parallel_sleep", Engine: "reactor", Scheduling: "adaptive", Request: Request{Begun: us(25), Ended: us(36000)}, Nodes: nodes,
		Tracks: []Track{
			{Kind: LoopTrack, Name: "Loop", Slices: []Slice{
				engine(us(25), us(30)), body(0, us(30), us(40)), body(0, us(2000), us(2010)), engine(us(2010), us(2012)),
				body(1, us(2012), us(2014)), engine(us(2014), us(2016)), body(2, us(2016), us(2018)),
				body(1, us(22016), us(22020)), engine(us(22020), us(22024)), body(3, us(22024), us(22040)),
				body(2, us(27020), us(27024)), engine(us(27024), us(27028)), body(4, us(27028), us(27044)),
				body(3, us(29000), us(29010)), body(4, us(30000), us(30020)), engine(us(30020), us(30024)),
				body(5, us(30024), us(30040)), engine(us(35990), us(36000)),
			}},
			{Kind: RedisTrack, Endpoint: "ep_0001", Name: "ep_0001 #0", Slices: []Slice{
				commands(0, 1, 27, 31, us(40), us(2000)), commands(3, 1, 30, 400, us(22040), us(29000))}},
			{Kind: RedisTrack, Endpoint: "ep_0001", Lane: 1, Name: "ep_0001 #0 lane 1", Slices: []Slice{commands(4, 1, 30, 400, us(27044), us(30000))}},
		},
		Flows: []Flow{
			redisFlow(0, 0, 1, us(40), us(40), us(2000), us(2000)),
			{TimerFlow, 1, []Point{{Asked, 0, us(2014)}, {Resumed, 0, us(22016)}}},
			{TimerFlow, 2, []Point{{Asked, 0, us(2018)}, {Resumed, 0, us(27020)}}},
			redisFlow(3, 0, 1, us(22040), us(22040), us(29000), us(29000)),
			redisFlow(4, 0, 2, us(27044), us(27044), us(30000), us(30000)),
		},
		Timers: []Timer{{SleepTimer, 1, us(22014), us(22016)}, {SleepTimer, 2, us(27018), us(27020)}},
	})
}

// deadline is a request whose second node times out while it waits, so that the third never runs.
func deadline() *Trace {
	nodes := chain("core::viewer", "core::follow", "core::take")
	nodes[0].ran(OnLoop, 0, us(40), us(10060), 0, 1).awaits(Await{ForRedis, us(52), us(10050), 1})
	nodes[1].ran(OnLoop, 0, us(10064), ms(20), 1, 0).awaits(Await{ForRedis, us(10080), ms(20), 1})
	nodes[1].Status, nodes[1].Error = Timeout, "node execution timeout: 9.936ms elapsed, limit 9.936ms"
	return built(&Trace{
		Plan: "follow_take", Engine: "reactor", Scheduling: "adaptive", Nodes: nodes, Dropped: 3,
		Request: Request{Begun: us(31), Ended: us(20010), Error: "node n1 (core::follow): node execution timeout: 9.936ms elapsed, limit 9.936ms"},
		Tracks: []Track{
			{Kind: LoopTrack, Name: "Loop", Slices: []Slice{
				engine(us(31), us(40)), body(0, us(40), us(52)), body(0, us(10050), us(10060)), engine(us(10060), us(10064)),
				body(1, us(10064), us(10080)), engine(ms(20), us(20010)),
			}},
			{Kind: RedisTrack, Endpoint: "ep_0001", Name: "ep_0001 #0", Slices: []Slice{
				commands(0, 1, 27, 31, us(52), us(10050)),
				{Kind: CallSlice, Node: 1, Start: us(10080), End: ms(20), Commands: 1, Sent: 39, GivenUp: true},
			}},
		},
		Flows: []Flow{
			redisFlow(0, 0, 1, us(52), us(52), us(10050), us(10050)),
			{RedisFlow, 1, []Point{{Asked, 0, us(10080)}, {Sent, 1, us(10080)}}},
		},
		Timers: []Timer{{DeadlineTimer, 1, ms(20), ms(20)}},
	})
}
