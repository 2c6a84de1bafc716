package gbdt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/jsondoc"
)

// Read reads a model in XGBoost's JSON format, as Booster.save_model("name.json") writes it in versions 1.7
// to 3.x, or in LightGBM's text format, version v2 to v4: see readLightGBM. A byte order mark may precede either. It
// checks all that Predict relies on. The error is one line and names the place in the file. Any goroutine.
//
// Read refuses, by name: other boosters of XGBoost than gbtree (dart, gblinear), models of several classes
// or outputs, and objectives that it does not know.
func Read(text []byte) (*Model, error) {
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", len(text), MaxFileBytes)
	}
	text = fileio.WithoutMark(text)
	switch {
	case isLightGBM(text):
		return readLightGBM(string(text))
	case len(text) > 2 && text[0] == '{' && text[1] == 'L':
		return nil, errors.New(`the file is UBJSON; save the model with a name that ends in ".json"`)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("the file is empty")
	case bytes.TrimSpace(text)[0] != '{' && bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New(`the file is binary, as XGBoost's old format; save the model with a name that ends in ".json"`)
	case bytes.TrimSpace(text)[0] != '{':
		return nil, errors.New(`the file is no model: XGBoost's JSON begins with "{", LightGBM's text with the line "tree"`)
	}
	r := &reader{features: -1, targets: 1}
	r.Reader = jsondoc.NewReader(withoutNaN(text), r)
	if err := r.document(); err != nil {
		return nil, err
	}
	return r.model()
}

// reader reads one file. It keeps what a Model needs and skips the rest. One goroutine at a time.
type reader struct {
	jsondoc.Reader

	booster    string // name of gradient_booster
	objective  string
	names      []string
	baseScores []float32
	features   int64 // -1: the file does not say
	classes    int64
	targets    int64
	hasTrees   bool
	planter    planter
}

func (r *reader) document() error {
	err := r.object(func(name string) error {
		if name == "learner" {
			return r.object(r.learner)
		}
		return r.Skip()
	})
	if err != nil {
		return err
	}
	if end := r.InputOffset(); !r.AtEnd() {
		return fmt.Errorf("data after the document, which ends at byte %d", end)
	}
	return nil
}

func (r *reader) learner(name string) error {
	switch name {
	case "feature_names":
		return r.array(MaxFeatures, func() (err error) {
			feature, err := r.text()
			r.names = append(r.names, feature)
			return err
		})
	case "learner_model_param":
		return r.object(r.param)
	case "objective":
		return r.object(func(name string) (err error) {
			if name != "name" {
				return r.Skip()
			}
			r.objective, err = r.text()
			return err
		})
	case "gradient_booster":
		return r.object(func(name string) (err error) {
			switch name {
			case "name":
				r.booster, err = r.text()
				return err
			case "model":
				return r.object(r.gbtree)
			}
			return r.Skip()
		})
	}
	return r.Skip()
}

func (r *reader) param(name string) (err error) {
	switch name {
	case "base_score":
		r.baseScores, err = r.floatList()
	case "num_feature":
		r.features, err = r.countText()
	case "num_class":
		r.classes, err = r.countText()
	case "num_target":
		r.targets, err = r.countText()
	default:
		err = r.Skip()
	}
	return err
}

// gbtree reads a member of the booster's model.
func (r *reader) gbtree(name string) error {
	switch name {
	case "tree_info": // the class of each tree
		return r.array(MaxTrees, func() error {
			class, err := r.integer()
			if err == nil && class != 0 {
				err = r.fail("is %d: models of several classes or outputs are not supported", class)
			}
			return err
		})
	case "trees":
		r.hasTrees = true
		return r.array(MaxTrees, func() error {
			var t rawTree
			if err := r.object(func(name string) error { return r.tree(&t, name) }); err != nil {
				return err
			}
			if err := r.planter.plant(&t); err != nil {
				return fmt.Errorf("%s.%w", r.path(), err) // the place is that of the object that has ended
			}
			return nil
		})
	}
	return r.Skip()
}

// rawTree is a tree as the file has it: one element per node in each list.
type rawTree struct {
	left, right, feature, kind []int32
	condition                  []float32         // of a leaf: its value; of a categorical split: a NaN
	hessian                    []float32         // nil: the file has none
	categories                 []int32           // of all categorical splits
	setNodes                   []int32           // these splits
	setBegins, setSizes        []int32           // where the categories of each begin, and how many they are
	set                        map[int32][]int32 // the categories by node
	planter                    *planter
	defaultLeft                []bool
	nodes, leafSize            int64 // as tree_param says; 0: it does not
	widest                     *widest
}

func (r *reader) tree(t *rawTree, name string) (err error) {
	switch name {
	case "left_children":
		t.left, err = list(r, r.integer)
	case "right_children":
		t.right, err = list(r, r.integer)
	case "split_indices":
		t.feature, err = list(r, r.integer)
	case "split_type":
		t.kind, err = list(r, r.integer)
	case "split_conditions":
		t.condition, err = list(r, r.condition)
	case "sum_hessian":
		t.hessian, err = list(r, r.condition)
	case "categories":
		t.categories, err = list(r, r.integer)
	case "categories_nodes":
		t.setNodes, err = list(r, r.integer)
	case "categories_segments":
		t.setBegins, err = list(r, r.integer)
	case "categories_sizes":
		t.setSizes, err = list(r, r.integer)
	case "default_left":
		t.defaultLeft, err = list(r, r.flag)
	case "tree_param":
		err = r.object(func(name string) (err error) {
			switch name {
			case "num_nodes":
				t.nodes, err = r.countText()
			case "size_leaf_vector":
				t.leafSize, err = r.countText()
			default:
				err = r.Skip()
			}
			return err
		})
	default:
		err = r.Skip()
	}
	return err
}

// model checks parts of the file against each other.
func (r *reader) model() (*Model, error) {
	o, known := objectiveByName(r.objective)
	switch {
	case r.booster != "gbtree":
		return nil, fmt.Errorf(`learner.gradient_booster.name: is %s, must be "gbtree"`, errtext.Quote(r.booster))
	case !r.hasTrees:
		return nil, errors.New("learner.gradient_booster.model.trees: is missing")
	case r.features < 1 || r.features > MaxFeatures:
		return nil, fmt.Errorf("learner.learner_model_param.num_feature: is %s, must be from 1 to %d", orMissing(r.features), MaxFeatures)
	case r.classes > 1 || strings.HasPrefix(r.objective, "multi:"):
		return nil, fmt.Errorf("learner.objective.name: %s has %d classes: models of several classes are not supported",
			errtext.Quote(r.objective), r.classes)
	case r.targets > 1:
		return nil, fmt.Errorf("learner.learner_model_param.num_target: is %d: models of several outputs are not supported", r.targets)
	case !known:
		return nil, fmt.Errorf("learner.objective.name: objective %s is not supported", errtext.Quote(r.objective))
	case len(r.baseScores) != 1:
		return nil, fmt.Errorf("learner.learner_model_param.base_score: has %d values, must have one", len(r.baseScores))
	case len(r.names) > 0 && int64(len(r.names)) != r.features:
		return nil, fmt.Errorf("learner.feature_names: has %d names, num_feature is %d", len(r.names), r.features)
	}
	if w := r.planter.widest; int64(w.feature) >= r.features {
		return nil, fmt.Errorf("learner.gradient_booster.model.trees[%d].split_indices[%d]: is %d, must be below num_feature, %d",
			w.tree, w.node, w.feature, r.features)
	}
	margin := o.link.margin(r.baseScores[0])
	if !isNumber(margin) {
		return nil, fmt.Errorf("learner.learner_model_param.base_score: %v is not a prediction of %s", r.baseScores[0], o.name)
	}
	return &Model{objective: o, baseMargin: margin, names: r.names, features: int(r.features), forest: r.planter.forest()}, nil
}

func orMissing(n int64) string {
	if n < 0 {
		return "missing"
	}
	return strconv.FormatInt(n, 10)
}

// object is Object without a path: errors have the tokenizer's path.
func (r *reader) object(member func(name string) error) error { return r.Object("", member) }

// array reads an array of at most so many elements and calls item for each, which reads it.
func (r *reader) array(most int, item func() error) error {
	return r.Array("", func(n int) error {
		if n == most {
			return r.fail("has more than %d elements", most)
		}
		return item()
	})
}

// list reads an array of one element per node.
func list[T any](r *reader, read func() (T, error)) (items []T, err error) {
	err = r.array(MaxNodes, func() error {
		item, err := read()
		items = append(items, item)
		return err
	})
	return items, err
}

// Wrong implements jsondoc.Faults.
func (r *reader) Wrong(_, want string) error {
	if _, err := r.ReadToken(); err != nil {
		return r.Syntax(err)
	}
	return r.fail("must be %s", want)
}

// value reads a value of one of these kinds, which are not containers.
func (r *reader) value(want string, kinds ...jsontext.Kind) (string, error) {
	kind := r.PeekKind()
	for _, k := range kinds {
		if kind != k {
			continue
		}
		token, err := r.ReadToken()
		if err != nil {
			return "", r.Syntax(err)
		}
		return token.String(), nil
	}
	if err := r.Skip(); err != nil {
		return "", err
	}
	return "", r.fail("must be %s", want)
}

func (r *reader) text() (string, error) { return r.value("a string", jsontext.KindString) }

func (r *reader) integer() (int32, error) {
	text, err := r.value("an integer", jsontext.KindNumber)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, r.fail("must be an integer of 32 bits, not %s", errtext.Text(text))
	}
	return int32(n), nil
}

func (r *reader) float() (float32, error) {
	text, err := r.value("a number", jsontext.KindNumber)
	if err != nil {
		return 0, err
	}
	return r.parseFloat(text)
}

// condition reads the condition of a split, or the value of a leaf. A categorical split has a NaN: see withoutNaN.
func (r *reader) condition() (float32, error) {
	if r.PeekKind() == jsontext.KindString {
		if err := r.Skip(); err != nil {
			return 0, err
		}
		return float32(math.NaN()), nil
	}
	return r.float()
}

// parseFloat rounds once, from the decimal text to float32.
func (r *reader) parseFloat(text string) (float32, error) {
	v, err := strconv.ParseFloat(text, 32)
	if err != nil || !isNumber(float32(v)) {
		return 0, r.fail("must be a number in the range of float32, not %s", errtext.Text(text))
	}
	return float32(v), nil
}

// flag reads a truth value. Version 1.7 writes 0 and 1.
func (r *reader) flag() (bool, error) {
	text, err := r.value("0, 1, true or false", jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse)
	if err != nil {
		return false, err
	}
	switch text {
	case "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	}
	return false, r.fail("must be 0, 1, true or false")
}

// countText reads a number that the format writes as a string: "30".
func (r *reader) countText() (int64, error) {
	text, err := r.value("the text of an integer", jsontext.KindString, jsontext.KindNumber)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, r.fail("must be an integer that is not negative, not %s", errtext.Quote(text))
	}
	return n, nil
}

// floatList reads base_score: "5E-1" up to version 3.0, "[5E-1]" since 3.1.
func (r *reader) floatList() ([]float32, error) {
	text, err := r.value("the text of a number", jsontext.KindString, jsontext.KindNumber)
	if err != nil {
		return nil, err
	}
	list := text
	if inner, ok := strings.CutPrefix(text, "["); ok {
		list = strings.TrimSuffix(inner, "]")
	}
	var values []float32
	for part := range strings.SplitSeq(list, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil || !isNumber(float32(v)) {
			return nil, r.fail("must be a number in the range of float32, or one in brackets, not %s", errtext.Quote(text))
		}
		values = append(values, float32(v))
		if len(values) > MaxFeatures {
			break
		}
	}
	return values, nil
}

// path returns the place of the latest value: "learner.gradient_booster.model.trees[3]".
func (r *reader) path() string {
	var b strings.Builder
	for name := range r.StackPointer().Tokens() {
		if n, err := strconv.ParseUint(name, 10, 32); err == nil {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return errtext.Text(b.String())
}

func (r *reader) fail(format string, args ...any) error {
	place := r.path()
	if place == "" {
		place = "the document"
	}
	return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
}

// Syntax implements jsondoc.Faults: the tokenizer's words may change.
func (r *reader) Syntax(err error) error {
	if err == nil {
		return nil
	}
	var bad *jsontext.SyntacticError
	if at := r.InputOffset(); !errors.As(err, &bad) || errors.Is(err, io.ErrUnexpectedEOF) {
		if bad != nil {
			at = bad.ByteOffset
		}
		return fmt.Errorf("byte %d: the file ends in the middle of the model: it is cut off, or still being written", at)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("byte %d: a name stands twice in one object", bad.ByteOffset)
	}
	return fmt.Errorf("byte %d: the text is not JSON", bad.ByteOffset)
}
