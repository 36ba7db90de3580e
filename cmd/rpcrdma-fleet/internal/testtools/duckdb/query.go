package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

// printed is how many rows of a query are printed.
const printed = 3

// db is a DuckDB in memory.
type db struct{ *sql.DB }

// open starts DuckDB. A file with an extension may be one that was built by somebody else than its makers.
func open(ctx context.Context) (*db, error) {
	d, err := sql.Open("duckdb", "?allow_unsigned_extensions=true")
	if err != nil {
		return nil, err
	}
	return &db{d}, d.PingContext(ctx)
}

// rows is the result of a query, as text.
type rows struct {
	columns string
	list    []string
}

func (d *db) query(ctx context.Context, q string) (*rows, error) {
	r, err := d.QueryContext(ctx, q)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	names, err := r.Columns()
	if err != nil {
		return nil, err
	}
	values, at := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		at[i] = &values[i]
	}
	out := &rows{columns: strings.Join(names, " | ")}
	for r.Next() {
		if err := r.Scan(at...); err != nil {
			return nil, err
		}
		out.list = append(out.list, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
	}
	return out, r.Err()
}

func (r *rows) print() {
	fmt.Println(r.columns)
	for _, s := range r.list[:min(printed, len(r.list))] {
		fmt.Println(s)
	}
	fmt.Printf("%d rows\n\n", len(r.list))
}
