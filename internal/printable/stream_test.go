package printable

import (
	"bytes"
	"errors"
	"testing"
)

type inner struct {
	A int      `json:"a"`
	B []string `json:"b,omitempty"`
}

type embedded struct {
	List  []*inner          `json:"list"`
	Map   map[string]uint64 `json:"map"`
	None  []inner           `json:"none"`
	Empty []inner           `json:"empty"`
}

type outer struct {
	*embedded
	Name   string  `json:"name"`
	Bytes  []byte  `json:"bytes"`
	Left   *inner  `json:"left,omitempty"`
	Zero   int     `json:"zero,omitempty"`
	Zeroed inner   `json:"zeroed,omitzero"`
	Kept   inner   `json:"kept,omitempty"`
	Deep   *inner  `json:"deep"`
	Float  float64 // without a tag
	Hidden int     `json:"-"`
	secret int
}

func TestIndented(t *testing.T) {
	for name, v := range map[string]any{
		"zero":    outer{embedded: &embedded{}},
		"nothing": struct{}{},
		"no one":  &outer{},
		"full": &outer{
			embedded: &embedded{List: []*inner{{A: 1}, nil, {A: 2, B: []string{"<x>&\u202e", "y"}}}, Map: map[string]uint64{"z": 1, "a": 2}, Empty: []inner{}},
			Name:     "n\x00\u2028", Bytes: []byte("abc"), Left: &inner{}, Zero: 3, Zeroed: inner{A: 1}, Deep: &inner{B: []string{"b"}}, Float: 1.5, secret: 1,
		},
	} {
		var got, want bytes.Buffer
		if err := Indented(&got, v); err != nil {
			t.Fatal(err)
		}
		e := Encoder(&want)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%s:\n%s\nwant\n%s", name, &got, &want)
		}
	}
	if err := Indented(broken{}, &outer{Name: "x"}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
