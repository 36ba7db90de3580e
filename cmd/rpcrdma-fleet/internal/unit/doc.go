// Package unit decodes one unit of a fleet's work, without any engine: the captures of one tap become the state that
// reports are made from, and Parquet files.
package unit
