// Command duckdb runs the queries for DuckDB that docs/fleet.md shows over a folder of results, and prints the first
// rows of each.
//
//	cd cmd/rpcrdma-fleet/duckdb && go run . ../../../docs/fleet.md /data/results
//
// It is a module of its own, since DuckDB is 70 MB of C++ that nothing else needs.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

const rows = 3 // that are printed of a query

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: duckdb DOC RESULTS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
}

func run(doc, results string) error {
	b, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	list := queries(string(b))
	if len(list) < 5 {
		return fmt.Errorf("%s has %d queries", doc, len(list))
	}
	for i, q := range list {
		n, err := query(db, strings.ReplaceAll(q, "'results/", "'"+strings.ReplaceAll(results, "'", "''")+"/"))
		if err != nil {
			return fmt.Errorf("%s\n%w", q, err)
		}
		if n == 0 && i > 0 { // the first one makes a view
			return fmt.Errorf("%s\nno rows", q)
		}
	}
	fmt.Printf("%d queries were run\n", len(list))
	return nil
}

// queries are the blocks of SQL in a document.
func queries(doc string) (list []string) {
	for {
		_, rest, ok := strings.Cut(doc, "```sql\n")
		if !ok {
			return list
		}
		q, after, _ := strings.Cut(rest, "```")
		list, doc = append(list, q), after
	}
}

// query prints the first rows, and counts all.
func query(db *sql.DB, q string) (n int, err error) {
	r, err := db.Query(q)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	names, err := r.Columns()
	if err != nil {
		return 0, err
	}
	fmt.Println(strings.Join(names, " | "))
	values, at := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		at[i] = &values[i]
	}
	for ; r.Next(); n++ {
		if err := r.Scan(at...); err != nil {
			return n, err
		}
		if n < rows {
			fmt.Println(values...)
		}
	}
	fmt.Printf("%d rows\n\n", n)
	return n, r.Err()
}
