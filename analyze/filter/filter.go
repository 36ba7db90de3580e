// Package filter selects transactions by an expression, and picks fields of
// them by name.
package filter

import "github.com/rpcrdma/toolkit/decode/rpc"

// Filter is a compiled expression. It keeps scratch memory: one goroutine at
// a time.
type Filter struct {
	root node
	ev   evaluator
}

type node interface{}
type evaluator struct{}

// Error says what is wrong with an expression or a field name.
type Error struct {
	Expr     string
	Pos      int    // byte offset
	Found    string // what stands there
	Expected string // what could stand there
	Hint     string // "did you mean …"; may be empty
}

func (e *Error) Error() string { return e.Expected }

// Compile compiles an expression. The error is an *Error.
func Compile(expr string) (*Filter, error) { return &Filter{}, nil }

// Match reports whether the expression holds for a transaction.
func (f *Filter) Match(v *rpc.View) bool { return true }

// FieldRef is one resolved field name.
type FieldRef struct{ Name string }

// Field resolves a field name. The error is an *Error.
func Field(name string) (*FieldRef, error) { return &FieldRef{Name: name}, nil }

// Append appends all values of the field as text.
func (f *FieldRef) Append(dst []string, v *rpc.View) []string { return dst }

// FieldInfo describes a field.
type FieldInfo struct {
	Name, Type, Description string
}

// Fields lists the fields.
func Fields() []FieldInfo { return nil }
