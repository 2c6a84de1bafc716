package trace

import (
	"slices"
	"time"
)

// Mode says how the critical path weighs a node.
type Mode string

// The modes.
const (
	// Latency weighs a node with the time from ready to end: the path that explains the request's time.
	Latency Mode = "latency"
	// Service weighs a node with the time from start to end: the path that would be left on idle threads.
	Service Mode = "service"
)

// Path is the critical path: the longest path through the nodes that ran, from a node without inputs to one that
// no node reads. Immutable.
//
// In the mode Latency the waits and runs of all steps, and Tail, add up to the request's time.
type Path struct {
	Mode  Mode       `json:"mode"`
	Steps []PathStep `json:"steps"` // in the order in which they ran; empty if no node ran
	// Tail is the time from the end of the last step to the answer.
	Tail time.Duration `json:"tail_ns"`
	// Bound is the index of the node that weighs most, the first of several; -1 if no node ran.
	Bound int `json:"bound_node_index"`
}

// PathStep is one node of a path. Immutable.
type PathStep struct {
	Node int           `json:"node_index"`
	Wait time.Duration `json:"wait_ns"` // from ready to start
	Run  time.Duration `json:"run_ns"`  // from start to end
}

// Length returns the sum of the weights of all steps.
func (p *Path) Length() (sum time.Duration) {
	for _, s := range p.Steps {
		sum += s.weight(p.Mode)
	}
	return sum
}

func (s *PathStep) weight(m Mode) time.Duration {
	if m == Latency {
		return s.Wait + s.Run
	}
	return s.Run
}

// CriticalPath returns the critical path. Of equally long paths it takes, from the end backwards, the node
// with the lowest index.
func (t *Trace) CriticalPath(m Mode) Path {
	length := make([]time.Duration, len(t.Nodes)) // of the longest path that ends with the node
	before := make([]int, len(t.Nodes))           // the node before it on that path; -1: none
	read := make([]bool, len(t.Nodes))            // by a node that ran
	order, _ := t.order()
	for _, i := range order {
		n := &t.Nodes[i]
		before[i] = -1
		for _, in := range n.Inputs {
			if !t.Nodes[in].Ran() {
				continue
			}
			read[in] = true
			if b := before[i]; b < 0 || length[in] > length[b] || length[in] == length[b] && in < b {
				before[i] = in
			}
		}
		step := t.step(i)
		length[i] = step.weight(m)
		if before[i] >= 0 {
			length[i] += length[before[i]]
		}
	}
	p := Path{Mode: m, Bound: -1, Tail: t.Request.Ended}
	last := -1
	for i := range t.Nodes {
		if t.Nodes[i].Ran() && !read[i] && (last < 0 || length[i] > length[last]) {
			last = i
		}
	}
	if last < 0 {
		return p
	}
	p.Tail = t.Request.Ended - t.Nodes[last].End
	for i := last; i >= 0; i = before[i] {
		p.Steps = append(p.Steps, t.step(i))
	}
	slices.Reverse(p.Steps)
	heaviest := time.Duration(-1)
	for _, s := range p.Steps {
		if w := s.weight(m); w > heaviest {
			heaviest, p.Bound = w, s.Node
		}
	}
	return p
}

func (t *Trace) step(node int) PathStep {
	n := &t.Nodes[node]
	return PathStep{Node: node, Wait: n.Wait(), Run: n.Run()}
}

// order returns the nodes that ran, each after its inputs, unless these form a cycle.
func (t *Trace) order() (all []int, acyclic bool) {
	const begun, done = 1, 2
	state := make([]uint8, len(t.Nodes))
	acyclic = true
	var add func(node int)
	add = func(node int) {
		switch {
		case !t.Nodes[node].Ran() || state[node] == done:
		case state[node] == begun:
			acyclic = false
		default:
			state[node] = begun
			for _, in := range t.Nodes[node].Inputs {
				add(in)
			}
			state[node] = done
			all = append(all, node)
		}
	}
	for node := range t.Nodes {
		add(node)
	}
	return all, acyclic
}
