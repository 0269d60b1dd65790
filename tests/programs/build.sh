#!/bin/sh
# Builds the programs of this folder with -pg into the folder $1. They are ordinary programs: what differs
# between the lines is what differs in the world (PIE or not, optimisation, debug information, a shared library).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh FOLDER}
mkdir -p "$out"
cd "$here"
cc=${PROGRAM_CC:-gcc} cxx=${PROGRAM_CXX:-g++} fc=${PROGRAM_FC:-gfortran}
# gcc moves functions when it sees them all at once; -fno-ipa-* keeps the call graph that the sources show.
keep="-fno-inline-small-functions -fno-inline-functions-called-once -fno-ipa-cp -fno-ipa-sra -fno-ipa-icf"
$cc -pg -O1 $keep -no-pie -o "$out/cycle" cycle.c
$cc -pg -O2 $keep -no-pie -o "$out/calc" calc.c
$cxx -pg -O1 $keep -no-pie -o "$out/shapes" shapes.cc
if command -v "$fc" >/dev/null 2>&1; then
    $fc -pg -O2 $keep -J "$out" -no-pie -o "$out/heat" heat.f90
fi
$cc -pg -O1 $keep -no-pie -o "$out/twins" twins.c twins_left.c twins_right.c
$cc -pg -O2 $keep -fPIE -pie -o "$out/mandel" mandel.c
$cc -pg -O2 $keep -pie -fPIE -o "$out/sorter" sorter.c
$cc -pg -O1 $keep -pthread -o "$out/threads" threads.c
# Last: with -static there is no shared library.
$cc -pg -O1 $keep -fPIC -shared -o "$out/libwords.so" libwords.c
$cc -pg -O1 $keep -o "$out/uselib" uselib.c -L"$out" -lwords -Wl,-rpath,'$ORIGIN'
