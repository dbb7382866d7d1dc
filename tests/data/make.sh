#!/bin/sh
# Makes names/ and objects/ with nvcc 13.0 (and ar), in the folder of this script.
set -e
cd "$(dirname "$0")"
nvcc -arch=compute_75 -ptx names/names.cu -o names/names.sm75.ptx
nvcc -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75 \
    --compress-mode=size -fatbin names/names.cu -o names/names.zstd.fatbin
two="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]"
nvcc $two --compress-mode=size -c objects/single.cu -o objects/single.o
nvcc $two --compress-mode=speed -rdc=true -c objects/part.cu -o objects/part.o
nvcc $two -rdc=true -c objects/helper.cu -o objects/a_member_with_a_long_name.o
printf 'int host_only;\n' | gcc -x c -c - -o objects/host_only.o
rm -f objects/parts.a
(cd objects && ar rcD parts.a part.o a_member_with_a_long_name.o host_only.o)
rm objects/host_only.o
rm objects/a_member_with_a_long_name.o
