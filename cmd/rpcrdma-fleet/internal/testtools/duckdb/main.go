// Command duckdb runs the queries for DuckDB that docs/fleet.md shows over the results of a fleet, and prints the first
// rows of each.
//
//	cd cmd/rpcrdma-fleet/internal/testtools/duckdb && go run . ../../../../../docs/fleet.md /data/results
//	go run . -httpfs install ../../../../../docs/fleet.md 's3://results?endpoint=https://store:7070'
//
// DuckDB reads s3:// with its extension httpfs, which is not part of the library: -httpfs names a file that has it, for
// the version of DuckDB that is linked here, or has DuckDB install it from its own servers. Without, the objects of
// s3:// are copied into a temporary folder, by the package that the fleet itself uses, and the queries read that.
//
// With -against the queries also run over a folder, and all their rows have to be the same.
//
// It is a module of its own, since DuckDB is 70 MB of C++ that nothing else needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
)

func main() {
	httpfs := flag.String("httpfs", "", "read s3:// with the extension in this `file`, or install it")
	against := flag.String("against", "", "compare all rows with those of the results in this `folder`")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: duckdb [-httpfs FILE|install] [-against FOLDER] DOC RESULTS")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), flag.Arg(1), *httpfs, *against); err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, doc, results, httpfs, against string) error {
	b, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	list := queries(string(b))
	if len(list) < 5 {
		return fmt.Errorf("%s has %d queries", doc, len(list))
	}
	d, err := open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	switch remote := strings.HasPrefix(results, "s3://"); {
	case httpfs != "" && !remote:
		return errors.New("-httpfs is for results in s3://")
	case httpfs != "":
		if results, err = d.remote(ctx, httpfs, results); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "DuckDB reads %s itself, with httpfs\n", results)
	case remote:
		dir, err := os.MkdirTemp("", "duckdb-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		n, err := fetch(ctx, list, results, dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "NOTE: without -httpfs DuckDB does not read s3:// itself: %d objects were copied to a temporary folder\n", n)
		results = dir
	}
	for i, q := range list {
		rows, err := d.query(ctx, at(q, results))
		if err == nil && len(rows.list) == 0 && i > 0 { // the first one makes a view
			err = errors.New("no rows")
		}
		if err != nil {
			return fmt.Errorf("%s\n%w", q, err)
		}
		rows.print()
	}
	fmt.Printf("%d queries were run\n", len(list))
	if against == "" {
		return nil
	}
	n, err := d.compare(ctx, list, results, against)
	if err != nil {
		return err
	}
	fmt.Printf("%d queries have the same %d rows over %s\n", len(list), n, against)
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

// at is a query over results at some place.
func at(query, results string) string {
	return strings.ReplaceAll(query, "'results/", "'"+strings.ReplaceAll(strings.TrimSuffix(results, "/"), "'", "''")+"/")
}

// limit is what keeps a query from giving all its rows. Which ones it keeps is not always determined.
var limit = regexp.MustCompile(`\s+limit \d+\s*$`)

// compare runs all queries over results at two places, without limits, and compares their rows.
func (d *db) compare(ctx context.Context, list []string, one, other string) (n int, err error) {
	var all [2][]*rows
	for i, place := range []string{one, other} {
		for _, q := range list {
			r, err := d.query(ctx, at(limit.ReplaceAllString(q, ""), place))
			if err != nil {
				return 0, fmt.Errorf("over %s: %s\n%w", place, q, err)
			}
			slices.Sort(r.list)
			all[i] = append(all[i], r)
		}
	}
	for i, q := range list {
		a, b := all[0][i], all[1][i]
		if !slices.Equal(a.list, b.list) {
			return 0, fmt.Errorf("%s\nhas %d rows over %s and %d others over %s", q, len(a.list), one, len(b.list), other)
		}
		n += len(a.list)
	}
	return n, nil
}
