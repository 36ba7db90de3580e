package main

import (
	"io"

	"github.com/rpcrdma/toolkit/internal/table"
)

// printTable writes rows below a header, without lines around them. right says
// which columns are numbers.
func printTable(w io.Writer, header []string, right []bool, rows [][]string) error {
	t := table.Table{Header: header, Right: right, Rows: rows}
	return t.Write(w)
}
