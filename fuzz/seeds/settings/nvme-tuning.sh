# Settings for EXT4 and XFS on NVMe servers as an article proposes them, verbatim. The study
# nvme-tuning measures them.
#
#   sudo fsverdict check studies/nvme-tuning.sh

parted DEV mklabel gpt
parted -a optimal DEV mkpart primary 0% 100%

mkfs.xfs -f -m crc=1,finobt=1 -l size=256m,logbsize=256k DEV
mkfs.ext4 -O extent,uninit_bg,dir_index -E stride=128,stripe-width=128 DEV

mount -t xfs -o noatime,nodiratime,logbufs=8,logbsize=256k DEV /data
mount -t ext4 -o noatime,nodiratime,barrier=0,discard DEV /data

echo none > /sys/block/DEV/queue/scheduler
echo 1024 > /sys/block/DEV/queue/nr_requests
